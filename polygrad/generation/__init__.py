"""Text generation: draws the next tokens of a model one after the other.

    requests     requests, and the pieces of an answer
    sampling     draws tokens on the device
    engine       a model with a cache, and the captured Programs that extend it
    scheduler    many sequences at once, which join and leave between two tokens
    guesses      speculative decoding: several tokens for one run of the model
    beams        beam search for the likeliest answers

This package works on tokens; the caller provides their conversion to text (`requests.TokenText`).
"""

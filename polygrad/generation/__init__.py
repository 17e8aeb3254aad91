"""Generation: a model's next tokens, drawn one after the other.

    requests     what one asks for, and the pieces of an answer
    sampling     how a token is drawn, on the device
    engine       a model with a cache, and the captured Programs that extend it
    scheduler    many sequences at once, which join and leave between two tokens
    guesses      several tokens for one run of the model
    beams        the likeliest answers, looked for along several at once

All of it works on tokens; text is made of them by what the caller gives (`requests.TokenText`).
"""

"""Models by the task that they are used for, on files that arrive in pieces: what `pipeline` of the
JavaScript package stands on.

    loading      the files of a model become the Pipeline of a task
    tasks        one class for each task: what it is asked, and what it answers, as plain data
    answers      answers that are written while somebody waits
    onnx_module  an ONNX file in the place of a family's module
    detection    objects in pictures
    binding      what another language calls

A model's work is done by `polygrad.hf` and `polygrad.onnx`.
"""

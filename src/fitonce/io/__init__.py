"""Models in files and for other programs, and files that are whole or absent.

`fitonce.io.saving` has the model files, `fitonce.io.onnx` the ONNX graphs, `fitonce.io.atomic` the
writing of any file.
"""

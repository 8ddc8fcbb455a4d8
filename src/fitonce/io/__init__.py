"""Model files and export to other programs.

`fitonce.io.saving` has the model files, `fitonce.io.onnx` the ONNX graphs.
"""

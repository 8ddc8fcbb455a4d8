"""Model files, export to other programs, and safe writing of files.

`fitonce.io.saving` has the model files, `fitonce.io.onnx` the ONNX graphs, and `fitonce.io.atomic`
writes files completely or not at all.
"""

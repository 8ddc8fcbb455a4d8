"""Models for other programs: ONNX."""

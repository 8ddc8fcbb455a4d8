"""Display classes in scikit-learn's manner."""

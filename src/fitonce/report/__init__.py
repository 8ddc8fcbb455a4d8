"""One offline page that explains a fitted model and lets its reader try others."""

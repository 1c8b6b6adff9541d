"""What a run has found: judged, printed, kept and drawn."""

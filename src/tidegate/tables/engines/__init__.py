"""One file per engine: how a source is opened there. Nothing else knows which engine it talks to."""

import os

# What tests start ends with a message where a pass fails (core/jit/passes/pipeline.h).
os.environ.setdefault("TENSORD_VERIFY_PASSES", "1")

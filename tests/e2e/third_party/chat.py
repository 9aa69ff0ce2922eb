"""The configuration of the model `chat`: the inputs that clients of language models send."""


def input_of(name, datatype, dims="1, 1"):
    return f'{{ name: "{name}" data_type: TYPE_{datatype} dims: [ {dims} ] }}'


CHAT_INPUTS = (("text_input", "STRING"), ("max_tokens", "INT32"), ("top_k", "INT32"), ("top_p", "FP32"), ("temperature", "FP32"),
               ("length_penalty", "FP32"), ("repetition_penalty", "FP32"), ("random_seed", "UINT64"), ("beam_width", "INT32"),
               ("stream", "BOOL"))
CHAT = f"""max_batch_size: 0
model_transaction_policy {{ decoupled: True }}
input [ {", ".join(input_of(*row) for row in CHAT_INPUTS)} ]
output [ {input_of("text_output", "STRING", "1")} ]
"""

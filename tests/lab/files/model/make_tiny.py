"""Make a Llama of three megabytes with random weights, and a tokenizer for it, in the folder given. No download."""

import sys

import torch
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers
from transformers import LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast

VOCABULARY = 512
SPECIAL = ["<pad>", "<s>", "</s>", "<|turn|>", "<|end|>"]
TEXT = "two small machines answer as one large machine would; a cable joins them and a model is spread over both."
CHAT = (
    "{% for message in messages %}<|turn|>{{ message['role'] }}: {{ message['content'] }}<|end|>{% endfor %}"
    "{% if add_generation_prompt %}<|turn|>assistant: {% endif %}"
)


def tokenizer() -> PreTrainedTokenizerFast:
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    trainer = trainers.BpeTrainer(
        vocab_size=VOCABULARY, special_tokens=SPECIAL, initial_alphabet=alphabet, show_progress=False
    )
    letters = Tokenizer(models.BPE())
    letters.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    letters.decoder = decoders.ByteLevel()
    letters.train_from_iterator([TEXT] * 20, trainer)
    made = PreTrainedTokenizerFast(tokenizer_object=letters, bos_token="<s>", eos_token="</s>", pad_token="<pad>")
    made.chat_template = CHAT
    return made


def llama() -> LlamaForCausalLM:
    torch.manual_seed(1)
    shape = LlamaConfig(
        vocab_size=VOCABULARY,
        hidden_size=256,
        intermediate_size=512,
        num_hidden_layers=2,
        num_attention_heads=4,
        num_key_value_heads=2,
        head_dim=64,
        max_position_embeddings=2048,
        bos_token_id=1,
        eos_token_id=2,
        pad_token_id=0,
        tie_word_embeddings=False,
        dtype="bfloat16",
    )
    return LlamaForCausalLM(shape).to(torch.bfloat16)


tokenizer().save_pretrained(sys.argv[1])
llama().save_pretrained(sys.argv[1], safe_serialization=True)

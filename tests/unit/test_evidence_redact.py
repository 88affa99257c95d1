"""Nothing of a request and no key survives, and what explains a fault does.

tests/cases/evidence has what vLLM 0.32 really printed when its own RequestLogger, response middleware and validation
were given a prompt, an answer, stop words and a schema with ZEBRA in them and the token ids 777001 to 777003, with
--log-level DEBUG, as text and as JSON.
"""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from strixd.evidence.redact import LONGEST, MASK, Redaction, assigned

CASES = Path(__file__).parents[1] / "cases/evidence"
HEAD = "2026-11-29T22:24:38Z strixd-vllm: "


def cleaned(*lines: str, secrets: tuple[str, ...] = ()) -> list[str]:
    return list(Redaction(secrets).lines(lines))


@pytest.mark.parametrize("name", ["vllm-0.32.log", "vllm-0.32-json.log"])
@pytest.mark.parametrize("before", ["", HEAD])
def test_what_vllm_says_of_requests(name: str, before: str) -> None:
    said = (CASES / name).read_text().splitlines()
    assert sum("ZEBRA" in line for line in said) > 10
    kept = "\n".join(cleaned(*(before + line for line in said)))
    assert "ZEBRA" not in kept
    assert "77700" not in kept
    assert "lines that may tell of requests: left out" in kept


@pytest.mark.parametrize(
    "words",
    [
        "Avg prompt throughput: 5.3 tokens/s, Avg generation throughput: 12.1 tokens/s, Running: 1 reqs",
        "EngineCore encountered a fatal error.",
        "RuntimeError: gloo: Connection closed by peer [192.168.100.2]:40011",
        "RequestValidationError caught. Request id: cmpl-3",
        "prompt_token_ids_len=3",
    ],
)
def test_what_explains_a_fault_is_kept(words: str) -> None:
    assert words in "\n".join(cleaned(*(CASES / "vllm-0.32.log").read_text().splitlines()))


@pytest.mark.parametrize(
    "line",
    [
        "non-default args: {'model': '/models/m', 'max_num_batched_tokens': 8192, 'tokenizer_mode': 'auto'}",
        "Using max_num_batched_tokens=2048, TOKENIZERS_PARALLELISM=false, 12 output tokens",
        'INFO:     127.0.0.1:5550 - "POST /v1/completions HTTP/1.1" 500 Internal Server Error',
        "amdgpu 0000:c5:00.0: amdgpu: ring gfx_0.0.0 timeout, signaled seq=1, emitted seq=3",
        "KeyError: 'model.layers.0'",
        "Processed prompts: 100%|####| 3/3",
        "123 vllm serve /models/m --max-model-len 1024 --tensor-parallel-size 2",
        "strixd has stopped strixd-vllm.service: no token for 20 s",
    ],
)
def test_ordinary_lines_stay_as_they_are(line: str) -> None:
    assert cleaned(line) == [line]


@pytest.mark.parametrize(
    "line",
    [
        "HF_TOKEN=PLANTED",
        'Environment="VLLM_API_KEY=PLANTED x"',
        "huggingface said 401 for hf_PLANTEDabcdefgh",
        "Authorization: Bearer PLANTED",
        "{'api_key': ['PLANTED', 'PLANTED'], 'port': 8000}",
        "{'hf_token': 'PLANTED'}",
        '{"apiKey": "PLANTED"}',
        "vllm serve m --api-key PLANTED PLANTED",
        "vllm serve m --hf-token=PLANTED --port 8000",
        "https://user:PLANTED@example.org/v1",
        "password: PLANTED",
        "Input: prompt='PLANTED",
        "{'role': 'user', 'content': 'PLANTED'}",
        '"{\\"prompt\\": \\"PLANTED\\"}"',
        "delta_text=PLANTED",
        "the text was 'PLANTED " + "x" * 80 + "'",
    ],
)
def test_keys_and_texts_are_masked(line: str) -> None:
    (kept,) = cleaned(line)
    assert "PLANTED" not in kept
    assert MASK in kept


def test_a_known_secret_is_found_wherever_it_stands() -> None:
    kept = cleaned("raylet got s3cr3t+value/==, exiting", "s3cr3t+value/==", secrets=("s3cr3t+value/==", "x", ""))
    assert kept == [f"raylet got {MASK}, exiting", MASK]


def test_a_secret_at_the_cut_of_a_long_line_leaves_no_part_of_itself() -> None:
    (kept,) = cleaned("a " * (LONGEST // 2 - 3) + "topsecretvalue", secrets=("topsecretvalue",))
    assert "tops" not in kept


def test_what_follows_a_request_without_a_head_goes_with_it_until_the_next_head() -> None:
    ready = HEAD + "(APIServer pid=1) INFO 11-29 22:24:39 [launcher.py:47] ready"
    request = HEAD + "(APIServer pid=1) INFO 11-29 22:24:38 [request_logger.py:65] Received request a: params: x"
    other = "2026-11-29T22:24:38Z systemd: Stopping strixd-vllm.service"
    kept = cleaned(request, HEAD + "rest of a line that journald broke", other, ready, HEAD + "plain words")
    assert kept == ["[2 lines that may tell of requests: left out]", other, ready, HEAD + "plain words"]


def test_a_long_line_without_a_head_may_be_the_rest_of_one() -> None:
    assert cleaned(HEAD + "word " * 1000) == ["[1 lines that may tell of requests: left out]"]


def test_json_stays_json() -> None:
    tree = {"token": "PLANTED", "why": "sent Bearer PLANTED99", "members": [{"name": "halo1", "gpus": 1}], "ok": True}
    cleaned = Redaction().value(tree)
    assert "PLANTED" not in json.dumps(cleaned)
    assert cleaned == {**tree, "token": MASK, "why": f"sent {MASK}"}


def test_secrets_of_units_and_environments() -> None:
    unit = 'Environment="HF_TOKEN=aaa111"\nEnvironment="RAY_AUTH_TOKEN_PATH=/etc/strixd/cluster.key"\n'
    assert assigned(unit + "Environment=VLLM_USE_V1=1") == {"aaa111"}
    assert assigned("PATH=/usr/bin\0MY_API_KEY=bbb222\0TOKENIZERS_PARALLELISM=false\0") == {"bbb222"}

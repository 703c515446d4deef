"""Times blocks in PyTorch eager, one at a time, for the bench that started it.

Requests are lines of JSON on stdin, answers lines on stdout:
  {"load": {"inputs": [{"name", "path", "dtype", "shape"}], "code", "wanted", "cotangent"}}
      -> {"outputs": [paths of f32 arrays]} or {"error"}
  {"time": iterations}
      -> {"seconds": of one iteration}
With `wanted`, an iteration also computes the gradients of those inputs, by the first output.
"""

import json
import os
import sys
import time

import numpy as np
import torch
import torch.nn.functional as F  # noqa: F401  (blocks use it)

torch.set_num_threads(int(os.environ.get("OMP_NUM_THREADS", "1")))


def read(path, dtype, shape):
    array = np.fromfile(path, dtype=np.float32).reshape(shape)
    return torch.from_numpy(array).to(getattr(torch, dtype))


def tensors(result):
    return list(result) if isinstance(result, (tuple, list)) else [result]


def load(inputs, code, wanted, cotangent, folder):
    names = [x["name"] for x in inputs]
    wanted = [name in wanted for name in names]
    values = [read(x["path"], x["dtype"], x["shape"]) for x in inputs]
    body = code if "return" in code else f"return {code}"
    space = {"torch": torch, "F": F}
    names = ", ".join(names)
    exec(f"def block({names}):\n    inputs = [{names}]\n    " + body.replace("\n", "\n    "), space)
    block = space["block"]
    if any(wanted):
        values = [v.requires_grad_() if w else v for w, v in zip(wanted, values)]
        leaves = [v for w, v in zip(wanted, values) if w]
        slope = read(cotangent["path"], cotangent["dtype"], cotangent["shape"])

        def run():
            outputs = tensors(block(*values))
            gradients = torch.autograd.grad(outputs[0], leaves, slope)
            return [outputs[0].detach(), *gradients]

    else:

        def run():
            with torch.inference_mode():
                return tensors(block(*values))

    paths = []
    for number, output in enumerate(run()):
        path = os.path.join(folder, f"torch{number}")
        output.detach().to(torch.float32).contiguous().numpy().tofile(path)
        paths.append(path)
    return run, paths


def main():
    run = None
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # What libraries print goes to stderr.
    for line in sys.stdin:
        request = json.loads(line)
        try:
            if "load" in request:
                run = None
                run, outputs = load(**request["load"])
                answer = {"outputs": outputs}
            else:
                iterations = request["time"]
                run()
                start = time.perf_counter()
                for _ in range(iterations):
                    run()
                answer = {"seconds": (time.perf_counter() - start) / iterations}
        except Exception as error:  # The bench reports it beside the block.
            answer = {"error": f"{type(error).__name__}: {error}"}
        print(json.dumps(answer), file=answers, flush=True)


main()

# SPDX-License-Identifier: Apache-2.0
"""The first use of a fresh install: a right output passes, a wrong one fails and is named. Prints how long that took,
and how much processor time; exit 1 where that is more than first_verdict.py SECONDS. Run by ci/bare.sh."""
import subprocess
import sys
import time

CALL = """
import assay, numpy as np
q, k = np.zeros((1, 1, 8), np.float16), np.ones((1, 4, 1, 8), np.float16)
assert assay.judge(np.ones((1, 1, 8), np.float16), q, (k, k), seq_lens=[4]).passed
assay.assert_attention(np.zeros((1, 1, 8), np.float16), q, (k, k), seq_lens=[4], findings=None)
"""


def processor_time():
    import resource

    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


begin = time.monotonic()
ran = subprocess.run([sys.executable, "-c", CALL], text=True, capture_output=True)
print(f"first verdict: {time.monotonic() - begin:.2f} s, {processor_time():.2f} s of processor time")
if "AttentionError: outside: row 0" not in ran.stderr:
    sys.exit(f"the verdict is missing: {ran}")
sys.exit(processor_time() > float(sys.argv[1]))

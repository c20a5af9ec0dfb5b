"""A batch on a Ray cluster: answers the rows of Parquet files. Started again, it goes on where it was.

    python job.py IN OUT CHECKPOINT --model /models/small.gguf --actors 1 1600

The three folders must be ones that all nodes see: a shared volume, or s3://, gs:// and so on.
"""

from __future__ import annotations

import argparse

import ray

import constrain.ray

parser = argparse.ArgumentParser(description="Answers the rows of Parquet files, which have the columns id and about.")
parser.add_argument("source")
parser.add_argument("target")
parser.add_argument("checkpoint")
parser.add_argument("--model", help="GGUF file on each node (the model of the extra demo)")
parser.add_argument("--actors", type=int, nargs=2, default=(1, 16), help="the least and the most actors")
parser.add_argument("--cpus", type=float, default=1, help="CPUs of an actor")
parser.add_argument("--context", type=int, default=2048, help="tokens of context of each answer")
arguments = parser.parse_args()

answered = constrain.ray.answers(
    ray.data.read_parquet(arguments.source),
    model=arguments.model,
    schema="name, age int",
    prompt="Who is this? {about}",
    id_column="id",
    max_tokens=60,
    concurrency=tuple(arguments.actors),
    cpus_per_actor=arguments.cpus,
    checkpoint=arguments.checkpoint,
    model_options={"n_ctx": arguments.context},
)
answered.write_parquet(arguments.target, mode="append")

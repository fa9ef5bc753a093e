"""Final files of a run, the outputs of the rule `train`."""

import csv
import io
from pathlib import Path

import numpy as np

from rarepapers.core.files import atomic_path, write_json, write_text
from rarepapers.core.tensor_files import save_tensors
from rarepapers.machine.device import describe_device, peak_memory_gib, source_commit, versions
from rarepapers.machine.processor import processor_name
from rarepapers.models import CHECKPOINTS
from rarepapers.models.building import plain_weights
from rarepapers.training.progress import HISTORY_COLUMNS, Progress
from rarepapers.training.trainer import Trainer


def write_final_files(run, corpus, trainer: Trainer, final: dict, progress: Progress, output: Path, facts: dict):
    """Write the final files of a run, each atomically; `training.json` last.

    final: the weights to evaluate. facts: further entries of the record.
    """
    last = {name: tensor.cpu() for name, tensor in plain_weights(trainer.model).items()}
    save_tensors(output / CHECKPOINTS["best"], final, {"run": run["hash"]})
    save_tensors(output / CHECKPOINTS["last"], last, {"run": run["hash"]})
    table = io.StringIO()
    writer = csv.writer(table, lineterminator="\n")
    writer.writerow(HISTORY_COLUMNS)
    writer.writerows(progress.history)
    write_text(output / "history.csv", table.getvalue())
    arrays = {
        f"{name}.{key}": tensor.cpu().numpy()
        for name, observation in trainer.observations.items()
        for key, tensor in observation.tensors.items()
    }
    with atomic_path(output / "observations.npz") as temporary:
        np.savez(temporary, **arrays)
    record = dict(run) | {
        "data": corpus.sha256,
        **facts,
        "tokenizer": corpus.tokenizer,
        "parameters": sum(parameter.numel() for parameter in trainer.model.parameters()),
        "derived": facts["derived"] | trainer.criterion.derived(),
        "precision": trainer.precision,
        "best_step": progress.best_step,
        "best_validation_loss": progress.best_loss,
        "best_validation_bleu": progress.best_bleu,
        "averaged_steps": progress.kept,
        "steps": progress.step,
        "tokens": progress.tokens,
        "seconds": round(progress.seconds, 3),
        "cpu_seconds": round(progress.cpu_seconds, 3),
        "peak_memory_gib": round(peak_memory_gib(trainer.device), 4),
        "device": describe_device(trainer.device),
        "processor": processor_name(),
        "resumes": progress.resumes,
        "versions": versions(),
        "commit": source_commit(),
    }
    write_json(output / "training.json", record)

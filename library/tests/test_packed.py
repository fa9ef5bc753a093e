"""Packed documents: parts that look at earlier tokens respect the boundaries of documents."""

import pytest
import torch
from test_huggingface import tokenizer
from test_patch import TYPES, tiny
from test_trainers import arguments, mixed
from torch.nn import functional as F

import raretok
from raretok import AGG, OutputLoss, Unlikelihood
from raretok.methods import unlikelihood

transformers = pytest.importorskip("transformers")
# Types 1 and 2 are in both documents.
DOCUMENTS = [torch.tensor([1, 2, 3, 4, 5]), torch.tensor([6, 1, 7, 2, 8, 1])]


def packed(documents=DOCUMENTS):
    """As transformers' `DataCollatorWithFlattening` packs them."""
    rows = [{"input_ids": ids.tolist()} for ids in documents]
    return transformers.DataCollatorWithFlattening(return_tensors="pt")(rows)


@pytest.mark.parametrize("options", [{}, {"loss": raretok.Threshold(margin=0.1)}, {"soft_cap": 3.0}])
def test_documents_in_a_row_are_those_in_rows(options):
    """Also with a document that goes on from row to row, and with paths that have no closed form."""
    generator = torch.Generator().manual_seed(0)
    hidden = torch.randn(2, 12, 8, generator=generator, dtype=torch.float64, requires_grad=True)
    weight = torch.randn(9, 8, generator=generator, dtype=torch.float64, requires_grad=True)
    ids, targets = torch.randint(9, (2, 2, 12), generator=generator)
    documents = torch.tensor([[0] * 5 + [1] * 7, [3] * 2 + [0] * 10])
    criterion = OutputLoss(penalty=Unlikelihood(0.7), reduction="none", **options)
    ours = criterion(hidden, weight, targets, inputs=ids, documents=documents)
    parts = [(0, slice(0, 5)), (0, slice(5, 12)), (1, slice(0, 2)), (1, slice(2, 12))]
    theirs = [criterion(hidden[r, s][None], weight, targets[r, s][None], inputs=ids[r, s][None])[0] for r, s in parts]
    torch.testing.assert_close(ours.flatten(), torch.cat(theirs), rtol=1e-12, atol=1e-12)
    whole = criterion(hidden, weight, targets, inputs=ids)
    assert (whole - ours).abs().max() > 1e-3
    found = [torch.autograd.grad(losses.square().sum(), [hidden, weight]) for losses in (ours, torch.cat(theirs))]
    for one, other in zip(*found, strict=True):
        torch.testing.assert_close(one, other, rtol=1e-10, atol=1e-10)


def test_a_document_in_two_places_is_two_documents():
    """A document number that comes again later does not reach back."""
    ids = torch.tensor([[1, 2, 3, 4]])
    torch.manual_seed(0)
    hidden, weight = torch.randn(1, 4, 8), torch.randn(9, 8)
    criterion = OutputLoss(penalty=Unlikelihood(), reduction="none")
    again, apart = (
        criterion(hidden, weight, torch.full((1, 4), 7), inputs=ids, documents=torch.tensor([numbers]))
        for numbers in ([0, 1, 1, 0], [0, 1, 1, 2])
    )
    # Documents are what follows one another, so the last position has no earlier token.
    torch.testing.assert_close(again, apart)


@pytest.mark.parametrize("parts", [{}, {"gate": AGG(alpha=0.2, memory=3), "counts": torch.arange(TYPES, 0, -1)}])
def test_a_patched_model_reads_boundaries_from_position_ids(parts):
    model = tiny("llama").double()
    batch = packed()
    assert batch["labels"][0, 5] == -100
    raretok.patch(model, penalty=Unlikelihood(2.0), **parts)
    losses = [model(**batch, use_cache=False).loss]
    width = max(map(len, DOCUMENTS))
    ids = torch.stack([F.pad(text, (0, width - len(text))) for text in DOCUMENTS])
    labels = torch.stack([F.pad(text, (0, width - len(text)), value=-100) for text in DOCUMENTS])
    losses.append(model(ids, labels=labels, attention_mask=(labels != -100).long(), use_cache=False).loss)
    torch.testing.assert_close(losses[0], losses[1], rtol=1e-6, atol=0)


def test_trls_padding_free_batches(tmp_path):
    """Padding-free training with unlikelihood equals padded training."""
    trl, datasets = pytest.importorskip("trl"), pytest.importorskip("datasets")
    rows = datasets.Dataset.from_list([{"input_ids": text.tolist()} for text in DOCUMENTS * 4])
    found = []
    for padding_free in (False, True):
        model = tiny("llama")
        raretok.patch(model, penalty=Unlikelihood(1.0))
        settings = arguments(
            tmp_path, trl.SFTConfig, padding_free=padding_free, max_length=None, max_steps=2,
            per_device_train_batch_size=2, dataset_kwargs={"skip_prepare_dataset": True}, optim="sgd",
        )  # fmt: skip
        run = mixed(trl.SFTTrainer)(model=model, args=settings, train_dataset=rows, processing_class=tokenizer())
        run.train()
        found.append(model.get_output_embeddings().weight.detach())
    torch.testing.assert_close(found[1], found[0], rtol=1e-4, atol=1e-6)
    assert (found[0] - tiny("llama").get_output_embeddings().weight).abs().max() > 1e-4


def test_first_occurrences_begin_anew_with_each_document():
    ids = torch.tensor([[1, 1, 2, 1, 2, 2]])
    starts = torch.tensor([[0, 0, 0, 1, 1, 1]])
    assert unlikelihood.first_occurrences(ids).tolist() == [[True, False, True, False, False, False]]
    assert unlikelihood.first_occurrences(ids, starts).tolist() == [[True, False, True, True, True, False]]


@pytest.mark.parametrize(
    ("documents", "words"),
    [
        (torch.zeros(2, 3), "documents are of type torch.float32; give a tensor"),
        (torch.zeros(2, 4, dtype=torch.int64), "documents are 2 x 4, but targets are 2 x 3"),
    ],
)
def test_wrong_documents_are_refused(documents, words):
    ids = torch.zeros(2, 3, dtype=torch.int64)
    with pytest.raises(ValueError, match=words):
        OutputLoss(penalty=Unlikelihood())(torch.ones(2, 3, 4), torch.ones(5, 4), ids, inputs=ids, documents=documents)

"""torchvision's detectors, scripted, with random weights whose answers are worth comparing: activations of unit scale, scores that are
spread and not tied. Run in float64 by PyTorch and by tensord; boxes, labels and scores must agree one to one.

Untrained heads give every box nearly one score, and which of equal ones non-maximum suppression keeps is the last bit's word: so
batch norms take the statistics of an input, and the layers that say scores are scaled to a standard deviation of 2.

Usage: /usr/bin/python3 -m tests.models.detectors TENSORD [NAME…]
"""

from __future__ import annotations

import pathlib
import subprocess
import sys
import tempfile
import warnings

import torch
from torchvision.models import detection
from torchvision.models.detection.anchor_utils import AnchorGenerator
from torchvision.models.detection.backbone_utils import mobilenet_backbone
from torchvision.models.mobilenetv3 import mobilenet_v3_large

CLASSES = 12


def with_rois(maker, **options):
    """A region-based detector with a MobileNet backbone."""
    backbone = mobilenet_backbone(backbone_name="mobilenet_v3_large", weights=None, fpn=True, trainable_layers=6)
    return maker(backbone, CLASSES, min_size=160, max_size=240, rpn_anchor_generator=AnchorGenerator(
        ((16, 32, 64),) * 3, ((0.5, 1.0, 2.0),) * 3), rpn_pre_nms_top_n_test=200, rpn_post_nms_top_n_test=60,
        box_detections_per_img=40, **options)


def dense(maker, sizes):
    backbone = mobilenet_backbone(backbone_name="mobilenet_v3_large", weights=None, fpn=True, trainable_layers=6)
    return maker(backbone, CLASSES, min_size=160, max_size=240, anchor_generator=AnchorGenerator(
        tuple((size,) for size in sizes), ((1.0,),) * 3), detections_per_img=40, topk_candidates=150)


MODELS = {
    "fasterrcnn": lambda: with_rois(detection.FasterRCNN),
    "maskrcnn": lambda: with_rois(detection.MaskRCNN),
    "keypointrcnn": lambda: with_rois(detection.KeypointRCNN, num_keypoints=5),
    "retinanet": lambda: dense(detection.RetinaNet, (16, 32, 64)),
    "fcos": lambda: dense(detection.FCOS, (16, 32, 64)),
    "ssd300": lambda: detection.ssd300_vgg16(weights=None, weights_backbone=None, num_classes=CLASSES, detections_per_img=60),
    "ssdlite": lambda: detection.ssdlite320_mobilenet_v3_large(weights=None, weights_backbone=None, num_classes=CLASSES, detections_per_img=60),
}
SCORES = ("cls_logits", "cls_score", "classification_head", "bbox_ctrness", "mask_fcn_logits", "kps_score_lowres")


def spread(model, images) -> None:
    """Sets batch norm statistics from the images, then weights of score layers, each from the first input that it
    sees."""
    torch.manual_seed(2)
    norms = [m for m in model.modules() if isinstance(m, torch.nn.BatchNorm2d)]
    for norm in norms:
        norm.momentum = 1.0

    def normalize(module, inputs, output):
        centered = output - module.bias.view(1, -1, *[1] * (output.dim() - 2)) if module.bias is not None else output
        deviation = float(centered.std())
        if getattr(module, "is_spread", False) or not deviation > 0:
            return None
        module.is_spread = True
        wanted = 2.0 if any(part in module.path for part in SCORES) and module.path in last else 1.0
        with torch.no_grad():
            module.weight.mul_(wanted / deviation)
            if module.bias is not None:
                module.bias.zero_()
        return centered * (wanted / deviation)

    last = {path for path, m in model.named_modules() if isinstance(m, (torch.nn.Conv2d, torch.nn.Linear, torch.nn.ConvTranspose2d)) and any(s in path for s in SCORES)}
    hooks = []
    for path, module in model.named_modules():
        if isinstance(module, (torch.nn.Conv2d, torch.nn.Linear, torch.nn.ConvTranspose2d)) and "bbox_pred" not in path and "regression_head.module_list" not in path:
            module.path = path
            hooks.append(module.register_forward_hook(normalize))
    for norm in norms:
        norm.train()
    with torch.no_grad():
        model(images)
    for hook in hooks:
        hook.remove()
    for norm in norms:
        norm.eval()
    for module in model.modules():
        for name in ("path", "is_spread"):
            if name in module.__dict__:
                delattr(module, name)


def flat(detections) -> list:
    """The tensors of each image, in order of their names."""
    return [(f"{i}.{name}", one[name]) for i, one in enumerate(detections) for name in sorted(one)]


def check(name: str, tensord: str, folder: pathlib.Path) -> str:
    """"" if tensord's result equals PyTorch's; prints what was compared."""
    torch.manual_seed(1)
    model = MODELS[name]().double().eval()
    images = [torch.rand(3, 150, 200, dtype=torch.float64), torch.rand(3, 170, 160, dtype=torch.float64)]
    spread(model, images)
    scripted = torch.jit.script(model)
    with torch.no_grad():
        want = model(images)  # PyTorch's own run of the script differs from it in the eighth digit
    scripted.save(str(folder / "model.pt"))
    torch.save((images,), str(folder / "arguments.pt"))
    subprocess.run([tensord, "run", folder / "model.pt", "--call", f"forward,{folder}/arguments.pt,{folder}/result.pt"], check=True)
    got = torch.load(folder / "result.pt")[1]
    scores = torch.cat([one["scores"] for one in want])
    distinct = scores.sort().values.diff()
    print(f"{name}: {len(scores)} boxes, {len(torch.cat([one['labels'] for one in want]).unique())} labels, scores {scores.min():.3f} … {scores.max():.3f}, "
          f"least gap {distinct.min() if len(distinct) else 0:.1e}", flush=True)
    if len(scores) < 10 or scores.max() - scores.min() < 0.02:
        return f"{name}: scores that say nothing"
    if [key for key, _ in flat(got)] != [key for key, _ in flat(want)]:
        return f"{name}: other results than {[key for key, _ in flat(want)]}"
    for (key, ours), (_, theirs) in zip(flat(got), flat(want)):
        if ours.shape != theirs.shape:
            return f"{name}: {key} is of shape {tuple(ours.shape)}, not {tuple(theirs.shape)}"
        if not torch.allclose(ours.double(), theirs.double(), rtol=1e-9, atol=1e-9):
            return f"{name}: {key} is off by {(ours.double() - theirs.double()).abs().max():.1e}"
    return ""


def main() -> int:
    warnings.filterwarnings("ignore")
    torch.set_num_threads(1)
    tensord, names = sys.argv[1], sys.argv[2:] or list(MODELS)
    problems = []
    for name in names:
        with tempfile.TemporaryDirectory(prefix="tensord_detectors_") as folder:
            problems.append(check(name, tensord, pathlib.Path(folder)))
    print("\n".join(p for p in problems if p))
    return 1 if any(problems) else 0


if __name__ == "__main__":
    sys.exit(main())

"""torchvision's detectors in small: what users script from torchvision.models.detection."""

import torch
from torch import nn
from torchvision.models.detection import FCOS, FasterRCNN, KeypointRCNN, MaskRCNN, RetinaNet
from torchvision.models.detection.anchor_utils import AnchorGenerator, DefaultBoxGenerator
from torchvision.models.detection.ssd import SSD
from torchvision.ops import DeformConv2d, MultiScaleRoIAlign

SIZES = {"min_size": 48, "max_size": 64}


class Backbone(nn.Module):
    def __init__(self, out_channels=16):
        super().__init__()
        self.out_channels = out_channels
        self.layers = nn.Sequential(nn.Conv2d(3, 16, 3, stride=2, padding=1), nn.ReLU(), nn.Conv2d(16, out_channels, 3, stride=4, padding=1),
                                    nn.ReLU())

    def forward(self, x):
        return self.layers(x)


def spread(model):
    """Spreads scores by more than rounding errors, so that the order of boxes does not depend on them."""
    generator = torch.Generator().manual_seed(5)
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            if name.endswith("bias"):
                parameter.add_(torch.randn(parameter.shape, generator=generator) * 0.2)
            elif "cls" in name or "classification" in name:
                parameter.mul_(10)
    return model.eval()


def anchors():
    return AnchorGenerator(((8, 16, 32),), ((0.5, 1.0, 2.0),))


def pooler(size):
    return MultiScaleRoIAlign(["0"], size, 2)


def faster_rcnn():
    return FasterRCNN(Backbone(), 4, rpn_anchor_generator=anchors(), box_roi_pool=pooler(3), **SIZES)


def mask_rcnn():
    return MaskRCNN(Backbone(), 3, rpn_anchor_generator=anchors(), box_roi_pool=pooler(3), mask_roi_pool=pooler(4), **SIZES)


def keypoint_rcnn():
    return KeypointRCNN(Backbone(), 2, rpn_anchor_generator=anchors(), box_roi_pool=pooler(3), keypoint_roi_pool=pooler(4),
                        num_keypoints=5, **SIZES)


def retinanet():
    return RetinaNet(Backbone(32), 3, anchor_generator=anchors(), **SIZES)


def fcos():
    return FCOS(Backbone(32), 3, anchor_generator=AnchorGenerator(((16,),), ((1.0,),)), **SIZES)


def ssd():
    backbone = Backbone()
    backbone.out_channels = [16]
    return SSD(backbone, DefaultBoxGenerator([[2, 3]], scales=[0.2, 0.6], steps=[8]), (64, 64), 3)


class Deformable(nn.Module):
    def __init__(self):
        super().__init__()
        self.offset = nn.Conv2d(8, 2 * 2 * 9, 3, padding=1)
        self.mask = nn.Conv2d(8, 2 * 9, 3, padding=1)
        self.conv = DeformConv2d(8, 6, 3, padding=1, groups=2)

    def forward(self, x):
        return self.conv(x, self.offset(x)), self.conv(x, self.offset(x), torch.sigmoid(self.mask(x)))


DETECTORS = {"faster_rcnn": faster_rcnn, "mask_rcnn": mask_rcnn, "keypoint_rcnn": keypoint_rcnn, "retinanet": retinanet, "fcos": fcos,
             "ssd": ssd}


def detector(name):
    images = [[torch.rand(3, 40, 56), torch.rand(3, 60, 44)], [torch.rand(3, 48, 48)]]
    return spread(DETECTORS[name]()), ["scripted"], [("forward", (batch,)) for batch in images]


def deformable():
    return Deformable().eval(), ["scripted", "traced"], [("forward", (torch.randn(2, 8, 7, 9),))]

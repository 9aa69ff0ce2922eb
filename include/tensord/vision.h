#pragma once

// Images: decoding, transforms, datasets.
#include "tensord/tensor.h"
//
#include "core/vision/datasets.h"
#include "core/vision/image.h"
#include "core/vision/transforms.h"

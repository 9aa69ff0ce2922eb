#pragma once

// Pictures: decoding, transforms, datasets.
#include "core/vision/datasets.h"
#include "core/vision/image.h"
#include "core/vision/transforms.h"

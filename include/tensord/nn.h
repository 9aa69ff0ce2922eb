#pragma once

// Modules, layers, initial values, clipping of gradients.
#include "tensord/tensor.h"
//
#include "core/nn/adaptive_softmax.h"
#include "core/nn/clip_grad.h"
#include "core/nn/containers.h"
#include "core/nn/conv.h"
#include "core/nn/init.h"
#include "core/nn/layers.h"
#include "core/nn/losses.h"
#include "core/nn/module.h"
#include "core/nn/norms.h"
#include "core/nn/operator_layers.h"
#include "core/nn/pooling.h"
#include "core/nn/rnn.h"
#include "core/nn/transformer.h"

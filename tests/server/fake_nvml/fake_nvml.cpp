// A fake of the driver's libnvidia-ml.so.1: two GPUs, of which the second does not report its power.
#include <array>
#include <cstdio>

namespace {
constexpr int kSuccess = 0, kNotSupported = 3;
struct Gpu {
  unsigned number;
  unsigned long long millijoules;
};
std::array<Gpu, 2> gpus{{{0, 7000}, {1, 0}}};
struct Utilization {
  unsigned gpu, memory;
};
struct Memory {
  unsigned long long total, free, used;
};
int if_told(const Gpu* gpu) { return gpu->number == 0 ? kSuccess : kNotSupported; }
}  // namespace

extern "C" {

int nvmlInit_v2() { return kSuccess; }
int nvmlShutdown() { return kSuccess; }

int nvmlDeviceGetCount_v2(unsigned* count) {
  *count = static_cast<unsigned>(gpus.size());
  return kSuccess;
}

int nvmlDeviceGetHandleByIndex_v2(unsigned index, Gpu** gpu) {
  *gpu = &gpus[index];
  return kSuccess;
}

int nvmlDeviceGetUUID(Gpu* gpu, char* uuid, unsigned size) {
  std::snprintf(uuid, size, "GPU-fake-%u", gpu->number);
  return kSuccess;
}

int nvmlDeviceGetUtilizationRates(Gpu* gpu, Utilization* use) {
  *use = {25 + 50 * gpu->number, 5};
  return kSuccess;
}

int nvmlDeviceGetMemoryInfo(Gpu* gpu, Memory* memory) {
  const unsigned long long used = (1ull << 30) * (1 + gpu->number);
  *memory = {16ull << 30, (16ull << 30) - used, used};
  return kSuccess;
}

int nvmlDeviceGetPowerUsage(Gpu* gpu, unsigned* milliwatts) {
  *milliwatts = 120500;
  return if_told(gpu);
}

int nvmlDeviceGetEnforcedPowerLimit(Gpu* gpu, unsigned* milliwatts) {
  *milliwatts = 300000;
  return if_told(gpu);
}

int nvmlDeviceGetTotalEnergyConsumption(Gpu* gpu, unsigned long long* millijoules) {
  *millijoules = gpu->millijoules += 500;
  return if_told(gpu);
}

}  // extern "C"

// A fake of a libnccl.so.2 of 2020.
extern "C" int ncclGetVersion(int* version) {
  *version = 2804;
  return 0;
}

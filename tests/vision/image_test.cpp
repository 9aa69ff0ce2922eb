// Images compared with torchvision and Pillow, and damaged or malicious files.
#include "core/vision/image.h"

#include <gmock/gmock.h>
#include <sys/resource.h>

#include <cstdlib>
#include <random>

#include "core/base/cancellation.h"
#include "core/jit/archive/torch_file.h"
#include "core/vision/decoders.h"
#include "tests/vision/vision_cases.h"

namespace tensord::vision::image_test {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;

const std::vector<std::pair<std::string, ImageMode>> kModes = {{"unchanged", ImageMode::kUnchanged},
                                                               {"gray", ImageMode::kGray},
                                                               {"gray_alpha", ImageMode::kGrayAlpha},
                                                               {"rgb", ImageMode::kRGB},
                                                               {"rgb_alpha", ImageMode::kRGBAlpha}};

std::map<std::string, std::string> all_bytes() {
  std::map<std::string, std::string> out;
  for (const Value& saved : cases("pictures")) {
    const Tensor& bytes = item(saved, "bytes").to_tensor();
    out[item(saved, "name").to_string()] = {reinterpret_cast<const char*>(bytes.data<uint8_t>()), bytes.size_bytes()};
  }
  return out;
}

std::string error_of(const std::string& bytes, const ImageOptions& options, ErrorCode* code = nullptr) {
  try {
    decode_image(bytes, options, "picture");
  } catch (const Error& error) {
    if (code) *code = error.code();
    EXPECT_THAT(error.what(), StartsWith("picture: "));
    return error.what();
  }
  return "no error";
}

TEST(Image, EqualsTorchvision) {
  int compared = 0;
  for (const Value& saved : cases("pictures")) {
    const std::string name = item(saved, "name").to_string();
    for (const auto& [mode_name, mode] : kModes) {
      const Value* expected = find(item(saved, "torchvision"), mode_name.c_str());
      // torchvision returns palette indices, ignores color keys, and gives palettes and 1-bit images an alpha other
      // than 255 where they have none.
      const bool is_other = (name.starts_with("palette") && mode_name == "unchanged") ||
                            ((name.starts_with("palette") || name == "bits.png") && mode_name.ends_with("alpha")) ||
                            (name == "color_key.png" && mode_name.ends_with("alpha"));
      if (!expected || is_other) continue;
      SCOPED_TRACE(concat(name, " ", mode_name));
      expect_same(decode_image(item(saved, "bytes").to_tensor(), {.mode = mode}), expected->to_tensor());
      ++compared;
    }
  }
  EXPECT_GT(compared, 65);
}

TEST(Image, EqualsPillow) {
  for (const Value& saved : cases("pictures")) {
    const std::string name = item(saved, "name").to_string();
    for (const auto& [mode_name, mode] : kModes) {
      const Value* expected = find(item(saved, "pillow"), mode_name.c_str());
      if (!expected || (mode == ImageMode::kRGBAlpha && name.ends_with(".jpg"))) continue;
      SCOPED_TRACE(concat(name, " ", mode_name));
      // Pillow rounds CMYK products differently.
      expect_same(decode_image(item(saved, "bytes").to_tensor(), {.mode = mode}), expected->to_tensor(),
                  name == "cmyk.jpg" ? 1 : 0);
    }
  }
}

TEST(Image, TurnsAsExifSays) {
  for (const Value& saved : cases("pictures")) {
    const std::string name = item(saved, "name").to_string();
    if (!name.starts_with("oriented")) continue;
    SCOPED_TRACE(name);
    const ImageOptions options{.mode = ImageMode::kRGB, .apply_exif_orientation = true};
    expect_same(decode_image(item(saved, "bytes").to_tensor(), options), item(saved, "turned").to_tensor());
  }
  EXPECT_EQ(exif_orientation(""), 1);
  EXPECT_EQ(exif_orientation(std::string("II*\0\xff\xff\xff\xff", 8)), 1);
  EXPECT_EQ(exif_orientation(std::string("MM\0*\0\0\0\x08\0\x01\x01\x12\0\x03\0\0\0\x01\0\x06\0\0", 22)), 6);
  EXPECT_EQ(exif_orientation(std::string("MM\0*\0\0\0\x08\0\x02\x01\x13\0\x03\0\0\0\x01\0\x06\0\0", 22)), 1);
}

TEST(Image, PalettesBecomeColors) {
  const auto bytes = all_bytes();
  expect_same(decode_image(bytes.at("palette.png")), decode_image(bytes.at("palette.png"), {.mode = ImageMode::kRGB}));
  expect_same(decode_image(bytes.at("palette_alpha.png")),
              decode_image(bytes.at("palette_alpha.png"), {.mode = ImageMode::kRGBAlpha}));
}

TEST(Image, SixteenBits) {
  const auto bytes = all_bytes();
  const Tensor whole = decode_image(bytes.at("deep.png"), {.keep_16_bits = true});
  ASSERT_EQ(whole.dtype(), DType::kInt32);
  const Tensor& data = decode_image(bytes.at("rgb_alpha.png"));
  const Tensor bits8 = decode_image(bytes.at("deep.png"));
  ASSERT_EQ(bits8.dtype(), DType::kUInt8);
  ASSERT_EQ(to_string(whole.sizes()), to_string(bits8.sizes()));
  const int64_t plane = whole.size(1) * whole.size(2);
  for (int64_t i = 0; i < whole.numel(); ++i) {
    // The high byte is one channel of the image, the low byte the next.
    ASSERT_EQ(whole.data<int32_t>()[i], data.data<uint8_t>()[i] * 256 + data.data<uint8_t>()[i + plane]);
    ASSERT_EQ(bits8.data<uint8_t>()[i], std::lround(whole.data<int32_t>()[i] / 257.0));
  }
  EXPECT_EQ(decode_image(bytes.at("rgb.png"), {.keep_16_bits = true}).dtype(), DType::kUInt8);
}

TEST(Image, Refused) {
  const auto bytes = all_bytes();
  ErrorCode code{};
  EXPECT_THAT(error_of("", {}, &code), HasSubstr("neither a JPEG nor a PNG"));
  EXPECT_EQ(code, ErrorCode::kUnimplemented);
  EXPECT_THAT(error_of("GIF89a", {}), HasSubstr("neither a JPEG nor a PNG"));
  EXPECT_THAT(error_of(bytes.at("rgb.jpg"), {.mode = ImageMode::kRGBAlpha}), HasSubstr("a JPEG has no alpha"));
  for (const char* name : {"rgb.jpg", "rgb.png"}) {
    EXPECT_THAT(error_of(bytes.at(name), {.max_pixels = 23 * 31 - 1}, &code),
                HasSubstr("31 x 23 pixels is larger than 712"));
    EXPECT_EQ(code, ErrorCode::kResourceExhausted);
    EXPECT_EQ(error_of(bytes.at(name), {.max_pixels = 23 * 31}), "no error");
  }
  EXPECT_THROW(decode_image(Tensor::empty(Dims{2, 2}, DType::kUInt8)), Error);
  EXPECT_THROW(read_image("/none/at.png"), Error);
}

// Overwrites a width, or the field at `at`; in PNGs the chunk's CRC is corrected.
TEST(Image, HugeAndEmptySizes) {
  const auto bytes = all_bytes();
  const auto crc_of = [](std::string_view data) {
    uint32_t crc = ~0u;
    for (const char c : data) {
      crc ^= static_cast<unsigned char>(c);
      for (int k = 0; k < 8; ++k) crc = crc & 1 ? crc >> 1 ^ 0xedb88320u : crc >> 1;
    }
    return ~crc;
  };
  const auto with_size = [&](uint32_t width, uint32_t height) {
    std::string png = bytes.at("rgb.png");
    const auto put = [&](size_t at, uint32_t value) {
      for (size_t i = 0; i < 4; ++i) png[at + i] = static_cast<char>(value >> (24 - 8 * i));
    };
    put(16, width), put(20, height);
    put(29, crc_of(std::string_view(png).substr(12, 17)));
    return png;
  };
  EXPECT_EQ(error_of(with_size(31, 23), {}), "no error");
  ErrorCode code{};
  EXPECT_THAT(error_of(with_size(0, 23), {}, &code), HasSubstr("damaged PNG"));
  EXPECT_EQ(code, ErrorCode::kDataLoss);
  EXPECT_NE(error_of(with_size(0x7fffffff, 0x7fffffff), {}), "no error");
  EXPECT_THAT(error_of(with_size(100000, 100000), {}, &code), HasSubstr("larger than 178956970 pixels"));
  EXPECT_EQ(code, ErrorCode::kResourceExhausted);
  EXPECT_THAT(error_of(with_size(31, 24), {}), HasSubstr("damaged PNG"));  // rows are missing
  std::string jpeg = bytes.at("full_color.jpg");
  const size_t frame = jpeg.find("\xff\xc0");
  ASSERT_NE(frame, std::string::npos);
  for (const char high : {'\x7f', '\0'}) {
    std::string changed = jpeg;
    for (size_t i = 5; i < 9; ++i) changed[frame + i] = high;
    EXPECT_NE(error_of(changed, {}, &code), "no error");
    EXPECT_EQ(code, high ? ErrorCode::kResourceExhausted : ErrorCode::kDataLoss);
  }
}

// libpng would allocate what the length says before it reads.
TEST(Image, ChunksThatClaimToBeHuge) {
  const std::string png = all_bytes().at("rgb.png");
  constexpr size_t kBehindHeader = 33;
  const auto peak_kb = [] {
    rusage usage{};
    getrusage(RUSAGE_SELF, &usage);
    return usage.ru_maxrss;
  };
  const long before_kb = peak_kb();
  for (const char* name : {"tEXt", "zTXt", "iTXt", "sPLT", "pCAL", "sCAL", "eXIf", "iCCP", "hIST", "tRNS", "abCd"}) {
    const std::string file = png.substr(0, kBehindHeader) + std::string("\x40\0\0\0", 4) + name + "key";
    EXPECT_THAT(error_of(file, {.apply_exif_orientation = true}), HasSubstr("the image is truncated")) << name;
  }
  EXPECT_LT(peak_kb() - before_kb, 256 << 10);
}

// A truncated file is never decoded.
TEST(Image, TruncatedFilesAreRefused) {
  const auto bytes = all_bytes();
  for (const char* name :
       {"rgb.png", "interlaced.png", "palette_alpha.png", "rgb.jpg", "progressive.jpg", "cmyk.jpg"}) {
    const std::string& whole = bytes.at(name);
    // The last bytes of a JPEG may contain no pixel data.
    const size_t end = whole.size() - (std::string_view(name).ends_with("jpg") ? 8 : 1);
    for (size_t size = 0; size < end; size += 1 + end / 150) {
      ErrorCode code{};
      EXPECT_NE(error_of(whole.substr(0, size), {}, &code), "no error") << name << " " << size;
    }
  }
}

// The size is read without the libraries, so that large headers take no time.
TEST(Image, SizesOfHeaders) {
  const auto bytes = all_bytes();
  for (const auto& [name, file] : bytes) {
    const Tensor image = decode_image(file, {.keep_16_bits = true});
    const ImageSize size = read_image_size(file);
    EXPECT_EQ(std::pair(size.height, size.width), std::pair(image.size(1), image.size(2))) << name;
    EXPECT_EQ(size.decoder_bytes > 0, name == "progressive.jpg") << name;
  }
  const ImageSize progressive = read_image_size(bytes.at("progressive.jpg"));
  const auto pixels = static_cast<uint64_t>(progressive.height * progressive.width);
  EXPECT_EQ(progressive.decoder_bytes, pixels * 6 / 4 * 2);  // two bytes for each of 1 + 1/4 + 1/4 values
  const std::string jpeg = bytes.at("rgb.jpg");
  const auto with_comments = [&](int count) {
    std::string out = jpeg.substr(0, 2);
    for (int i = 0; i < count; ++i) out += std::string("\xff\xfe\0\2", 4);
    return out + "junk" + jpeg.substr(2);
  };
  EXPECT_EQ(read_image_size(with_comments(1000)).width, read_image_size(jpeg).width);
  EXPECT_THROW(read_image_size(with_comments(10'001)), Error);
  for (const char fill : {'\xff', '\0'}) {  // between the segments
    const auto with_fill = [&](size_t count) {
      return jpeg.substr(0, 2) + std::string("\xff\xfe\0\2", 4) + std::string(count, fill) + jpeg.substr(2);
    };
    EXPECT_EQ(read_image_size(with_fill(1000)).width, read_image_size(jpeg).width);
    EXPECT_THROW(read_image_size(with_fill(2 << 20)), Error);
  }
  const std::string damaged[] = {jpeg.substr(0, 20), jpeg.substr(0, 2) + std::string(100, '\xff'),
                                 jpeg.substr(0, 2) + std::string("\xff\xc0\0\2", 4),
                                 jpeg.substr(0, 2) + std::string("\xff\xda\0\2", 4), "\xff\xd8\xff\xd9"};
  for (const std::string& file : damaged) {
    try {
      read_image_size(file);
      ADD_FAILURE();
    } catch (const Error& error) {
      EXPECT_THAT(error.what(), StartsWith("image: damaged JPEG: "));
      EXPECT_EQ(error.code(), ErrorCode::kDataLoss);
    }
  }
}

TEST(Image, ScansAreBounded) {
  const std::string jpeg = all_bytes().at("progressive.jpg");
  const size_t first = jpeg.find("\xff\xda");
  size_t end = first + 2;  // the next marker; within a scan 0xff has a zero behind it
  while (jpeg[end] != '\xff' || jpeg[end + 1] == '\0') ++end;
  const auto with_scans = [&](int more) {
    std::string out = jpeg.substr(0, end);
    for (int i = 0; i < more; ++i) out += jpeg.substr(first, end - first);
    return out + jpeg.substr(end);
  };
  EXPECT_EQ(error_of(with_scans(40), {}), "no error");
  EXPECT_THAT(error_of(with_scans(80), {}), HasSubstr("it has more than 64 scans"));
  const CancellationScope scope([] { return true; });
  EXPECT_THROW(decode_image(with_scans(40)), Error);
}

TEST(Image, DamagedFilesNeverCrash) {
  std::mt19937 random(5);
  int refused = 0, decoded = 0;
  for (const auto& [name, whole] : all_bytes()) {
    for (int i = 0; i < 150; ++i) {
      std::string bytes = whole;
      for (unsigned k = 0; k <= random() % 4; ++k) bytes[random() % bytes.size()] = static_cast<char>(random());
      const ImageOptions options{.mode = kModes[random() % 5].second,
                                 .apply_exif_orientation = random() % 2 == 0,
                                 .keep_16_bits = random() % 2 == 0,
                                 .max_pixels = 1 << 20};
      try {
        const Tensor image = decode_image(bytes, options, "picture");
        EXPECT_EQ(image.clone().numel(), image.numel());
        ++decoded;
      } catch (const Error& error) {
        EXPECT_THAT(error.what(), StartsWith("picture: ")) << name;
        ++refused;
      }
    }
  }
  EXPECT_GT(refused, 1000);
  EXPECT_GT(decoded, 200);
}

}  // namespace
}  // namespace tensord::vision::image_test

"""Saves images with the results of Pillow and torchvision, for the tests in this folder.

Usage: python3 -m tests.vision.make_vision_cases OUTPUT_FOLDER
"""

import gzip
import io
import pathlib
import pickle
import struct
import sys

import numpy
import torch
import torchvision
from PIL import Image
from torchvision import transforms
from torchvision.io import ImageReadMode, decode_image
from torchvision.transforms import functional

from tests.vision.png import png

# Debian's version turns the hue of bytes by 255ths cut off; from 0.15 on they are rounded as everywhere else.
tensor_hue = functional.F_t.adjust_hue


def adjust_hue(image, factor):
    if image.dtype != torch.uint8:
        return tensor_hue(image, factor)
    turned = tensor_hue(functional.convert_image_dtype(image, torch.float32), factor)
    return functional.convert_image_dtype(turned, torch.uint8)


functional.F_t.adjust_hue = adjust_hue

MODES = {"unchanged": ImageReadMode.UNCHANGED, "gray": ImageReadMode.GRAY, "gray_alpha": ImageReadMode.GRAY_ALPHA,
         "rgb": ImageReadMode.RGB, "rgb_alpha": ImageReadMode.RGB_ALPHA}


def test_image(height=23, width=31):
    """Smooth with some noise: [height, width, 4]."""
    random = numpy.random.default_rng(7)
    y, x = numpy.mgrid[:height, :width]
    planes = [128 + 120 * numpy.sin(x / 5 + i) * numpy.cos(y / (4 + i)) + random.normal(0, 4, x.shape) for i in range(4)]
    return numpy.clip(numpy.stack(planes, -1), 0, 255).astype(numpy.uint8)


def encoded(image, kind, **options):
    file = io.BytesIO()
    image.save(file, kind, **options)
    return file.getvalue()


def interlaced(array):
    rows = b""
    for y, x, dy, dx in ((0, 0, 8, 8), (0, 4, 8, 8), (4, 0, 8, 4), (0, 2, 4, 4), (2, 0, 4, 2), (0, 1, 2, 2), (1, 0, 2, 1)):
        part = array[y::dy, x::dx]
        rows += b"".join(b"\0" + row.tobytes() for row in part if row.size)
    return png(array.shape[1], array.shape[0], 8, 2, rows, interlaced=True)


def image_cases():
    data = test_image()
    rgb, rgba = Image.fromarray(data[..., :3]), Image.fromarray(data)
    palette = rgb.quantize(17)
    oriented = []
    for orientation in range(1, 9):
        exif = Image.Exif()
        exif[0x0112] = orientation
        oriented.append((f"oriented_{orientation}.jpg", encoded(rgb, "JPEG", quality=90, exif=exif)))
    deep = (data[..., :3].astype(numpy.uint16) << 8) | data[..., 1:]
    deep_rows = b"".join(b"\0" + row.astype(">u2").tobytes() for row in deep)
    return [
        ("gray.png", encoded(rgb.convert("L"), "PNG")), ("gray_alpha.png", encoded(rgba.convert("LA"), "PNG")),
        ("rgb.png", encoded(rgb, "PNG")), ("rgb_alpha.png", encoded(rgba, "PNG")),
        ("bits.png", encoded(rgb.convert("1"), "PNG")), ("palette.png", encoded(palette, "PNG")),
        ("palette_alpha.png", encoded(palette, "PNG", transparency=3)), ("interlaced.png", interlaced(data[..., :3])),
        ("color_key.png", encoded(rgb, "PNG", transparency=tuple(int(v) for v in data[2, 3, :3]))),
        ("deep.png", png(deep.shape[1], deep.shape[0], 16, 2, deep_rows)),
        ("one_pixel.png", encoded(rgb.crop((0, 0, 1, 1)), "PNG")),
        ("gray.jpg", encoded(rgb.convert("L"), "JPEG")), ("rgb.jpg", encoded(rgb, "JPEG", quality=80)),
        ("full_color.jpg", encoded(rgb, "JPEG", quality=95, subsampling=0)),
        ("progressive.jpg", encoded(rgb, "JPEG", progressive=True)), ("cmyk.jpg", encoded(rgb.convert("CMYK"), "JPEG")),
        *oriented,
    ]


def chw(array):
    array = numpy.asarray(array)
    return torch.from_numpy(numpy.ascontiguousarray(array[None] if array.ndim == 2 else array.transpose(2, 0, 1)))


def image_case(name, data):
    """Of 16 bits Pillow makes 8 by dropping the lower ones, and torchvision nothing, so the numbers are our own sums."""
    given = torch.frombuffer(bytearray(data), dtype=torch.uint8)
    by_torchvision, by_pillow = {}, {}
    for mode, number in MODES.items():
        try:
            decoded = decode_image(given, number)
        except RuntimeError:
            continue
        if decoded.dtype == torch.uint8:
            by_torchvision[mode] = decoded.contiguous()
    image = Image.open(io.BytesIO(data))
    if name != "deep.png":
        for mode, pillow in (("rgb", "RGB"), ("rgb_alpha", "RGBA")):
            by_pillow[mode] = chw(image.convert(pillow))
    turned = chw(numpy.asarray(__import__("PIL.ImageOps").ImageOps.exif_transpose(image).convert("RGB")))
    return {"name": name, "bytes": given, "torchvision": by_torchvision, "pillow": by_pillow, "turned": turned}


def transform_cases():
    t = transforms
    generator = torch.Generator().manual_seed(4)
    smooth = chw(test_image(37, 29)[..., :3])
    gray = smooth[:1].clone()
    floats = torch.rand(3, 20, 26, generator=generator)
    modes = t.InterpolationMode
    cases = [
        ("ToTensor", smooth, lambda x: x.float() / 255), ("Normalize", floats, t.Normalize((0.4, 0.5, 0.6), (0.2, 0.3, 0.1))),
        ("NormalizeOne", floats, t.Normalize((0.4,), (0.2,))),
        ("ResizeShorter", smooth, t.Resize(16, antialias=True)), ("ResizeMax", smooth, t.Resize(24, max_size=28, antialias=True)),
        ("ResizeBoth", smooth, t.Resize((50, 20), antialias=True)), ("ResizeFloat", floats, t.Resize((9, 40), antialias=True)),
        ("ResizePlain", smooth, t.Resize((15, 18), antialias=False)), ("ResizeNearest", smooth, t.Resize((15, 44), modes.NEAREST)),
        ("ResizeBicubic", smooth, t.Resize((15, 18), modes.BICUBIC, antialias=True)),
        ("ResizeSame", smooth, t.Resize((37, 29), antialias=True)),
        ("CenterCrop", smooth, t.CenterCrop((20, 15))), ("CenterCropOdd", smooth, t.CenterCrop(16)),
        ("CenterCropLarger", smooth, t.CenterCrop((20, 64))),
        ("Pad", smooth, t.Pad(3, fill=7)), ("PadFour", floats, t.Pad((1, 2, 3, 4), fill=0.5)),
        ("PadEdge", smooth, t.Pad((2, 3), padding_mode="edge")), ("PadReflect", smooth, t.Pad((2, 1, 0, 4), padding_mode="reflect")),
        ("Grayscale", smooth, t.Grayscale()), ("GrayscaleThree", floats, t.Grayscale(3)),
        ("RandomCrop", smooth, t.RandomCrop(12)), ("RandomCropPadded", smooth, t.RandomCrop((37, 29), padding=4, padding_mode="reflect")),
        ("RandomCropNeeded", smooth, t.RandomCrop((45, 20), pad_if_needed=True, fill=9)), ("RandomCropWhole", smooth, t.RandomCrop((37, 29))),
        ("RandomResizedCrop", smooth, t.RandomResizedCrop(18, antialias=True)),
        ("RandomResizedCropNarrow", floats, t.RandomResizedCrop((8, 10), scale=(0.9, 1.0), ratio=(3.0, 4.0), antialias=True)),
        ("RandomHorizontalFlip", smooth, t.RandomHorizontalFlip()), ("RandomVerticalFlip", smooth, t.RandomVerticalFlip(0.3)),
        ("ColorJitter", smooth, t.ColorJitter(0.4, 0.5, 0.6, 0.3)), ("ColorJitterFloat", floats, t.ColorJitter(0.4, 0.5, 0.6, 0.5)),
        ("ColorJitterGray", gray, t.ColorJitter(0.4, 0.5, 0.6, 0.1)), ("ColorJitterHue", smooth, t.ColorJitter(hue=0.5)),
        ("ColorJitterContrast", smooth, t.ColorJitter(contrast=0.5)),
        ("Training", smooth, t.Compose([t.RandomResizedCrop(16, antialias=True), t.RandomHorizontalFlip(), t.ColorJitter(0.4, 0.4, 0.4),
                                        t.ConvertImageDtype(torch.float32), t.Normalize((0.485, 0.456, 0.406), (0.229, 0.224, 0.225))])),
        ("Hue", smooth, lambda x: functional.adjust_hue(x, -0.37)), ("Saturation", smooth, lambda x: functional.adjust_saturation(x, 2.5)),
        ("Brightness", floats, lambda x: functional.adjust_brightness(x, 1.7)), ("Contrast", smooth, lambda x: functional.adjust_contrast(x, 0.2)),
        ("Crop", smooth, lambda x: functional.crop(x, -2, 5, 50, 10)),
    ]
    out = []
    for name, image, transform in cases:
        torch.manual_seed(31)
        out.append({"name": name, "image": image, "results": [transform(image).contiguous() for _ in range(6)]})
    return out


def idx(array):
    kinds = {"uint8": 8, "int8": 9, "int16": 11, "int32": 12, "float32": 13, "float64": 14}
    sizes = struct.pack(f">{array.ndim}I", *array.shape)
    return bytes([0, 0, kinds[array.dtype.name], array.ndim]) + sizes + array.astype(array.dtype.newbyteorder(">")).tobytes()


def binstring(data):
    return b"U" + bytes([len(data)]) + data if len(data) < 256 else b"T" + struct.pack("<I", len(data)) + data


def python2_pickle(array, names, labels):
    """As Python 2 wrote CIFAR's files: protocol 2 with byte strings."""
    def integer(number):
        return b"K" + bytes([number]) if number < 256 else b"M" + struct.pack("<H", number)

    dtype = b"cnumpy\ndtype\n" + binstring(b"u1") + b"K\x00K\x01\x87Rq\x05(K\x03" + binstring(b"|") + b"NNN"
    dtype += b"J\xff\xff\xff\xffJ\xff\xff\xff\xffK\x00tb"
    data = b"cnumpy.core.multiarray\n_reconstruct\nq\x03cnumpy\nndarray\nq\x04K\x00\x85" + binstring(b"b") + b"\x87Rq\x06(K\x01"
    data += integer(array.shape[0]) + integer(array.shape[1]) + b"\x86" + dtype + b"\x89" + binstring(array.tobytes()) + b"tb"
    out = b"\x80\x02}q\x01(" + binstring(b"batch_label") + b"q\x02" + binstring(b"a batch") + binstring(b"data") + data
    for name, numbers in zip(names, labels):
        out += binstring(name.encode()) + b"](" + b"".join(b"K" + bytes([number]) for number in numbers) + b"e"
    return out + b"u."


def datasets(folder):
    random = numpy.random.default_rng(3)
    mnist, images, labels = folder / "mnist" / "raw", random.integers(0, 256, (6, 28, 28), numpy.uint8), numpy.arange(6, dtype=numpy.uint8)
    mnist.mkdir(parents=True, exist_ok=True)
    (mnist / "train-images-idx3-ubyte").write_bytes(idx(images))
    (mnist / "train-labels-idx1-ubyte.gz").write_bytes(gzip.compress(idx(labels)))
    (mnist / "t10k-images-idx3-ubyte.gz").write_bytes(gzip.compress(idx(images[:2])))
    (mnist / "t10k-labels-idx1-ubyte").write_bytes(idx(labels[:2]))
    for name, array in (("i16", numpy.array([[1, -2], [300, -32768]], numpy.int16)), ("f32", numpy.float32([1.5, -2.25]))):
        (folder / f"{name}.idx").write_bytes(idx(array))
    rows = random.integers(0, 256, (30, 3072), numpy.uint8)
    targets = random.integers(0, 10, 30)
    for kind in ("cifar-10-batches-bin", "cifar-10-batches-py", "cifar-100-binary", "cifar-100-python"):
        (folder / kind).mkdir(exist_ok=True)
    for i, name in enumerate([*(f"data_batch_{n}" for n in range(1, 6)), "test_batch"]):
        part, numbers = rows[i * 5:i * 5 + 5], [int(n) for n in targets[i * 5:i * 5 + 5]]
        (folder / "cifar-10-batches-bin" / f"{name}.bin").write_bytes(b"".join(bytes([n]) + r.tobytes() for n, r in zip(numbers, part)))
        # As Python 2 wrote them, and as Python 3 does in its protocol 2.
        pickled = python2_pickle(part, ["labels"], [numbers]) if i % 2 else pickle.dumps({"data": part, "labels": numbers}, protocol=2)
        (folder / "cifar-10-batches-py" / name).write_bytes(pickled)
    for name, part in (("train", rows[:20]), ("test", rows[20:])):
        fine = [int(n) * 9 for n in targets[:len(part)]]
        (folder / "cifar-100-binary" / f"{name}.bin").write_bytes(b"".join(bytes([n // 5, n]) + r.tobytes() for n, r in zip(fine, part)))
        (folder / "cifar-100-python" / name).write_bytes(python2_pickle(part, ["coarse_labels", "fine_labels"], [[n // 5 for n in fine], fine]))
    torch.save({"mnist_images": torch.from_numpy(images), "rows": torch.from_numpy(rows), "targets": torch.from_numpy(targets)},
               folder / "datasets.pt")


def image_folder(folder):
    data = test_image(20, 24)
    for name, shift in (("b/2.png", 0), ("b/10.jpg", 1), ("b/inner/1.jpeg", 2), ("a/x.PNG", 3), ("a/note.txt", 0)):
        path = folder / "images" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        if path.suffix == ".txt":
            path.write_text("no picture")
        else:
            Image.fromarray(numpy.roll(data, shift, 0)[..., :3]).save(path)
    found = torchvision.datasets.ImageFolder(str(folder / "images"), transforms.PILToTensor())
    torch.save({"classes": found.classes, "paths": [str(pathlib.Path(p).relative_to(folder)) for p, _ in found.samples],
                "images": [image for image, _ in found], "targets": [target for _, target in found]}, folder / "image_folder.pt")


FILTERS = {"nearest": Image.Resampling.NEAREST, "box": Image.Resampling.BOX, "bilinear": Image.Resampling.BILINEAR,
           "hamming": Image.Resampling.HAMMING, "bicubic": Image.Resampling.BICUBIC, "lanczos": Image.Resampling.LANCZOS}


def preprocess_case(data, **options):
    """What Pillow and torchvision make of a file; `options` are read by preprocess_test.cpp."""
    image = Image.open(io.BytesIO(data))
    if options.get("exif"):
        image = __import__("PIL.ImageOps").ImageOps.exif_transpose(image)
    colors = options.get("colors", "RGB")
    image = image.convert("L" if colors == "L" else "RGB")
    mode = functional.InterpolationMode(options.get("filter", "bilinear"))
    if "shorter" in options:
        image = functional.resize(image, options["shorter"], mode)
    if "resized" in options:
        image = functional.resize(image, list(options["resized"]), mode)
    if "cropped" in options:
        image = functional.center_crop(image, list(options["cropped"]))
    out = chw(image)
    if options.get("dtype") != "uint8":
        out = out * torch.tensor(options["rescale"]) if "rescale" in options else out.float() / 255
        if colors == "BGR":
            out = out.flip(0)
        if "mean" in options:
            out = functional.normalize(out, options["mean"], options["std"])
    if options.get("dtype") == "float16":
        out = out.half()
    if options.get("channels_last"):
        out = out.permute(1, 2, 0)
    return {"bytes": torch.frombuffer(bytearray(data), dtype=torch.uint8), "expected": out.contiguous(),
            **{name: list(value) if isinstance(value, tuple) else value for name, value in options.items()}}


def preprocess_cases():
    imagenet = {"mean": (0.485, 0.456, 0.406), "std": (0.229, 0.224, 0.225)}
    images = dict(image_cases())
    large = encoded(Image.fromarray(test_image(301, 457)[..., :3]), "JPEG", quality=90)
    cases = [preprocess_case(large, filter=name, **{kind: value, "dtype": "uint8"}) for name in FILTERS for kind, value in
             (("shorter", 64), ("resized", (500, 71)), ("resized", (97, 613)), ("resized", (301, 50)), ("resized", (2, 457)))]
    cases += [preprocess_case(large, filter=name, shorter=256, cropped=(224, 224), **imagenet) for name in ("bilinear", "bicubic")]
    # Pillow's weights of this filter come from constants in float32.
    cases += [preprocess_case(large, filter="hamming", resized=size, dtype="uint8") for size in ((182, 169), (196, 183))]
    cases += [
        preprocess_case(large), preprocess_case(large, shorter=256, cropped=(223, 225), **imagenet),
        preprocess_case(large, resized=(20, 30), cropped=(33, 19), **imagenet), preprocess_case(large, shorter=33, cropped=(64, 32), **imagenet),
        preprocess_case(large, resized=(40, 40), rescale=1 / 255, mean=(0.5,), std=(0.5,), channels_last=True),
        preprocess_case(large, resized=(31, 30), colors="BGR", mean=(0.1, 0.2, 0.3), std=(1.0, 2.0, 3.0)),
        preprocess_case(large, shorter=50, colors="L", mean=(0.1307,), std=(0.3081,)),
        preprocess_case(large, shorter=50, dtype="float16", **imagenet),
        preprocess_case(images["oriented_6.jpg"], exif=True, shorter=15, **imagenet),
        preprocess_case(images["oriented_6.jpg"], shorter=15, **imagenet),
    ]
    cases += [preprocess_case(images[name], shorter=20, cropped=(16, 16), **imagenet)
              for name in images if name not in ("deep.png", "cmyk.jpg")]
    # A row in which the filter's constants show: Pillow's are of float.
    row = numpy.random.default_rng(3).integers(0, 256, (1801, 64), dtype=numpy.uint8)[1800:]
    cases.append(preprocess_case(encoded(Image.fromarray(row), "PNG"), filter="hamming", resized=(1, 23), dtype="uint8"))
    return cases


def main(output):
    folder = pathlib.Path(output)
    folder.mkdir(parents=True, exist_ok=True)
    torch.save([image_case(*case) for case in image_cases()], folder / "pictures.pt")
    torch.save(transform_cases(), folder / "transforms.pt")
    torch.save(preprocess_cases(), folder / "preprocess.pt")
    datasets(folder)
    image_folder(folder)


if __name__ == "__main__":
    main(sys.argv[1])

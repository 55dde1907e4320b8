# SPDX-License-Identifier: BSD-2-Clause
"""SPDK's accel module for mlx5 (lib/mlx5, module/accel/mlx5), if the directory has an SPDK that was built --with-rdma=mlx5_dv:
the command lines of its test/accel/mlx5/accel_mlx5_{crc32c,copy,crypto}.sh, each for a second, on each device.  accel_perf
compares each CRC with SPDK's own, and test_dma what it reads with what it wrote.  docs/fidelity.md says what has to be mended in
SPDK before its CRCs can be written."""
import json
import re
import tempfile

from harness import Skip, expect
from pairs import LINKS

SECONDS = "1"
MEMORY = ("--no-huge", "-s", "1024")
CORES = ("-m", "0x1")
KEY = {"name": "test_dek", "cipher": "AES_XTS", "key": "00112233445566778899001122334455",
       "key2": "11223344556677889900112233445500"}
DISK = {"name": "Malloc0", "num_blocks": 131072, "block_size": 512, "uuid": "e1c24cb1-dd44-4be6-8d67-de92a332013f"}
CRYPTO = {"base_bdev_name": "Malloc0", "name": "Crypto0", "key_name": "test_dek"}
VERIFY = ["-w", "verify"]
# Options of the program, and what differs from the usual parameters of mlx5_scan_accel_module.
CRC = [
    (["-C", "1", "-o", "4096", "-q", "64"], {}),
    (["-C", "33", "-o", "4096", "-q", "64"], {}),
    (["-C", "33", "-o", "131072", "-q", "8"], {}),
    (["-C", "77", "-o", "524288", "-q", "4"], {}),
    (["-C", "17", "-o", "131072", "-q", "32"], {"qp_size": 16}),
    (["-C", "17", "-o", "131072", "-q", "32"], {"num_requests": 32}),
    (["-C", "17", "-o", "131072", "-q", "32"], {"qp_size": 16, "num_requests": 32}),
    (["-C", "17", "-o", "131072", "-q", "32"], {"enable_driver": True}),
]
COPY = [
    (["-q", "64", "-o", "4096", "-O", "17"], {}),
    (["-q", "64", "-o", "4096", "-O", "33"], {}),
    (["-q", "64", "-o", "524288", "-O", "79"], {}),
    (["-q", "64", "-o", "131072", "-O", "49"], {"qp_size": 16}),
    (["-q", "64", "-o", "131072", "-O", "49"], {"num_requests": 64}),
    (["-q", "64", "-o", "131072", "-O", "49"], {"qp_size": 16, "num_requests": 64}),
    (["-q", "64", "-o", "4096", "-O", "17"], {"enable_driver": True}),
]
CIPHER = [
    ([*VERIFY, "-q", "64", "-o", "16384"], {"crypto_split_blocks": 8}),
    ([*VERIFY, "-q", "64", "-o", "4096", "-O", "17"], {}),
    ([*VERIFY, "-q", "64", "-o", "131072", "-O", "49"], {"crypto_split_blocks": 5}),
    ([*VERIFY, "-q", "64", "-o", "131072", "-O", "49"], {"enable_driver": True}),
    ([*VERIFY, "-q", "64", "-o", "131072", "-O", "49"], {"qp_size": 16, "num_requests": 32}),
    *((["-w", mode, "-M", "50", "-q", depth, "-o", size], {})
      for mode in ("randread", "randwrite", "randrw") for depth in ("64", "256") for size in ("512", "4096", "131072")),
    (["-w", "randrw", "-M", "50", "-q", "64", "-o", "4096", "-Y", "1000000"], {"crypto_split_blocks": 8}),
]


def called(method, **parameters):
    return {"method": method, **({"params": parameters} if parameters else {})}


def configuration(device, parameters, cipher):
    scan = called("mlx5_scan_accel_module", **{"qp_size": 256, "num_requests": 2047, "enable_driver": False,
                                               "allowed_devs": device, **parameters})
    accel = [scan, called("accel_crypto_key_create", **KEY)] if cipher else [scan]
    bdev = [called("bdev_malloc_create", **DISK), *([called("bdev_crypto_create", **CRYPTO)] if cipher else []),
            called("bdev_wait_for_examine")]
    return {"subsystems": [{"subsystem": "accel", "config": accel}, {"subsystem": "bdev", "config": bdev}]}


def program(path, options, configured, want):
    def test(session):
        with tempfile.NamedTemporaryFile("w", suffix=".json") as file:
            json.dump(configured, file)
            file.flush()
            result = session.run(str(path), "-c", file.name, *options, "-t", SECONDS, *CORES, *MEMORY)
        if "Crypto0" in options and "Found 1 devices, crypto 0" in result.text():
            raise Skip("the device announces no AES-XTS")
        expect(result.status == 0, f"status {result.status}\n{result.text()[-4000:]}")
        expect(re.search(want, result.text(), re.M), result.text())
    return test


def cases(directory):
    place = directory / "spdk"

    def skipped(_):
        raise Skip("spdk/build/examples/accel_perf is not there")

    perf, dma = place / "build/examples/accel_perf", place / "test/dma/test_dma/test_dma"
    if not perf.exists():
        yield "SPDK", skipped
        return
    for device in LINKS.values():
        for work in ("crc32c", "copy_crc32c"):
            for options, parameters in CRC:
                configured = configuration(device, parameters, False)
                configured["subsystems"].pop()  # accel_perf has no block devices
                yield (f"SPDK {device} {work} {' '.join(options)} {parameters or ''}",
                       program(perf, ["-w", work, "-y", *options], configured, "^Module: +mlx5$"))
        for options, parameters in COPY:
            yield (f"SPDK {device} copy {' '.join(options)} {parameters or ''}",
                   program(dma, [*VERIFY, "-b", "Malloc0", "-f", "-x", "translate", *options],
                           configuration(device, parameters, False), "Total"))
        for options, parameters in CIPHER:
            yield (f"SPDK {device} AES-XTS {' '.join(options)} {parameters or ''}",
                   program(dma, ["-b", "Crypto0", "-f", "-x", "translate", *options],
                           configuration(device, parameters, True), "Total"))

# SPDX-License-Identifier: BSD-2-Clause
"""The SDK's sample flexio_rpc, built by the SDK's own script as it is, from an installation at the place that the
script knows.  The script and the two sources may lie anywhere in the directory."""
import json
import os
import pathlib
import tempfile

import programs
from harness import Skip, expect

SCRIPT, DEVICE, HOST = "build_flexio_device.sh", "flexio_rpc_dev.c", "flexio_rpc.c"
NAME = "flexio_rpc"
BUILD_LIMIT = 1200  # seconds, for a compilation of everything beside others
# The directory's tools at the places of an installation, for one command: nobody else sees them.
IN_PLACE = """mount -t tmpfs none /opt && mkdir /opt/mellanox && mount --bind "$0/opt/mellanox" /opt/mellanox &&
mount --bind "$0/usr/local" /usr/local && exec "$@" """


def good(session, *command, **options):
    result = session.call(*map(str, command), **options)
    expect(result.status == 0, f"status {result.status} of {' '.join(map(str, command))}\n{result.text()}")
    return result


class Sample:
    """Built when the first test asks, into a directory that stays until the last one is done."""

    def __init__(self, directory):
        self.directory = directory
        self.place = None

    def source(self, name):
        found = sorted(self.directory.rglob(name))
        if not found:
            raise Skip(f"there is no {name} in {self.directory}")
        return found[0]

    @staticmethod
    def install(session, root):
        """The layout under /opt/mellanox wants a build directory of its own, as the user's has perhaps another."""
        build = pathlib.Path(session.build) / "outside"
        # As CC, ccache makes a directory in the run-time directory, which must be empty after the test.
        env = {name: value for name, value in session.env.items() if name != "XDG_RUNTIME_DIR"}
        if not (build / "build.ninja").exists():
            good(session, "meson", "setup", build, "-Dmellanox=true", "--prefix=/usr/local",
                 cwd=pathlib.Path(__file__).resolve().parents[2], env=env, limit=BUILD_LIMIT)
        targets = json.loads(good(session, "meson", "introspect", "--targets", build, env=env).out)
        files = [os.path.relpath(name, build) for target in targets if target["installed"]
                 for name in target["filename"]]
        good(session, "ninja", "-C", build, *files, env=env, limit=BUILD_LIMIT)
        good(session, "meson", "install", "-C", build, "--destdir", root, "--no-rebuild", "--quiet", env=env)

    def build(self, session):
        script, device, host = map(self.source, (SCRIPT, DEVICE, HOST))
        if session.call("unshare", "-rm", "true").status != 0:
            raise Skip("the system allows no namespaces of users, so nothing can be put at /opt/mellanox")
        place = tempfile.TemporaryDirectory(prefix="softhca-outside.")
        out = pathlib.Path(place.name)
        root = out / "root"
        self.install(session, root)
        in_place = ("unshare", "-rm", "sh", "-c", IN_PLACE, root)
        good(session, *in_place, "sh", script, NAME, device, out)
        sdk = "/opt/mellanox/flexio"
        good(session, *in_place, "gcc", f"-DDEV_APP_NAME={NAME}", host, out / f"{NAME}.a", f"-I{sdk}/include",
             f"-L{sdk}/lib", "-lflexio", "-libverbs", "-lmlx5", "-o", out / NAME)
        self.place = place

    def ready(self, session):
        if not self.place:
            self.build(session)
        return self.place.name


def cases(directory):
    sample = Sample(directory)
    name = f"{NAME}, built by {SCRIPT}"
    yield from programs.three(name, sample.ready, (f"./{NAME}", "mlx5_0", "2", "3"),
                              ("Calculate: 2 + 3 = 5\n", "Result: 5\n"))
    yield f"{name}, on Ethernet", programs.once(sample.ready, (f"./{NAME}", "mlx5_1", "40", "2"), ("Result: 42\n",))

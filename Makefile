# SPDX-License-Identifier: BSD-2-Clause
# A thin front to Meson; see README.md.
BUILD ?= build
PREFIX ?= /usr/local

.PHONY: all demo check check-long bench fuzz install uninstall clean

# Without the tests and the benchmark's programs, which scripts/check and bench build.
all: $(BUILD)/build.ninja
	ninja -C $(BUILD) product

$(BUILD)/build.ninja: meson.build
	meson setup --prefix=$(PREFIX) $(BUILD)

demo:
	scripts/demo

check:
	scripts/check

check-long:
	scripts/check --long

bench: $(BUILD)/build.ninja
	ninja -C $(BUILD)
	bench/run

fuzz: $(BUILD)/build.ninja
	ninja -C $(BUILD)
	tests/fuzz/run
	tests/signature/run --build $(BUILD) --only random --cases 200000 -v

# A PREFIX given here holds although the build directory was made with another.
install: all
	$(if $(filter-out file,$(origin PREFIX)),meson configure $(BUILD) -Dprefix=$(PREFIX) && ninja -C $(BUILD))
	meson install -C $(BUILD) --no-rebuild

uninstall:
	ninja -C $(BUILD) uninstall

clean:
	rm -rf $(BUILD)

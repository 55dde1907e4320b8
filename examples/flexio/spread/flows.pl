# SPDX-License-Identifier: BSD-2-Clause
# Prints a pcap file: 64 flows of UDP, 10 frames each, one after the other.
binmode STDOUT;
print pack("VvvVVVV", 0xa1b2c3d4, 2, 4, 0, 0, 65535, 1);
for my $n (0 .. 9) {
	for my $flow (0 .. 63) {
		my $udp = pack("nnnn", 4096 + $flow, 7, 8 + 64, 0) . pack("Nx60", $n);
		my $ip = pack("CCnnnCCnCCCCCCCC", 0x45, 0, 20 + length $udp, 0, 0, 64, 17, 0,
			192, 0, 2, 1, 192, 0, 2, 2);
		my $sum = 0;
		$sum += $_ for unpack "n*", $ip;
		$sum = ($sum & 0xffff) + ($sum >> 16);
		substr($ip, 10, 2) = pack "n", ~$sum & 0xffff;
		my $frame = pack("H12H12n", "02005e000202", "02005e000201", 0x0800) . $ip . $udp;
		print pack("VVVV", 0, $n * 1000 + $flow, length $frame, length $frame), $frame;
	}
}

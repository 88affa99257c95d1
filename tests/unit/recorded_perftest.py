"""What perftest and iperf3 write: the formats of perftest 4.5 and iperf3 3.12, shortened."""

from __future__ import annotations

_RULE = "-" * 87
_HEAD = f"""\
{_RULE}
                    RDMA_Write Latency Test
 Dual-port       : OFF		Device         : rocep194s0
 Number of qps   : 1		Transport type : IB
 Connection type : RC		Using SRQ      : OFF
 Mtu             : 4096[B]
 Link type       : Ethernet
 GID index       : 1
{_RULE}
 local address: LID 0000 QPN 0x0011 PSN 0x79dd10 RKey 0x1fddbc VAddr 0x000000023bd000
 GID: 00:00:00:00:00:00:00:00:00:00:255:255:192:168:100:01
 remote address: LID 0000 QPN 0x0011 PSN 0x40001a RKey 0x1fddbc VAddr 0x00000000bf9000
 GID: 00:00:00:00:00:00:00:00:00:00:255:255:192:168:100:02
{_RULE}
"""
_LATENCY = (
    " #bytes #iterations    t_min[usec]    t_max[usec]  t_typical[usec]    t_avg[usec]    t_stdev[usec]   "
    "99% percentile[usec]   99.9% percentile[usec] \n"
)
_ROW = (
    " 2       5000          4.76           16.81        5.04     \t       5.23        \t0.31   \t\t7.38    \t\t16.81  "
)
LATENCY = f"{_HEAD}{_LATENCY}{_ROW}\n{_RULE}\n"
_WARNING = "Conflicting CPU frequency values detected: 2200.000000 != 1040.353000. CPU Frequency is not max.\n"
_WARNED = (
    " 2       1000          6.88           16.81        7.04              7.06         0.31      7.38        16.81"
)
WARNED = f"{_HEAD}{_LATENCY}{_WARNING}{_WARNED}\n{_RULE}\n"
OLDEST = f"""{_RULE}
 #bytes #iterations    t_min[usec]    t_max[usec]  t_typical[usec]
 2        1000          1.76           6.12         1.79
{_RULE}
"""
BANDWIDTH = f"""{_HEAD} #bytes     #iterations    BW peak[Gb/sec]    BW average[Gb/sec]   MsgRate[Mpps]
 65536      386400           0.00               50.64  		   0.096588
{_RULE}
"""
REFUSED = "Couldn't connect to 192.168.100.2:18515\nUnable to open file descriptor for socket connection\n"
IPERF3 = """{
	"start":	{"version":	"iperf 3.12"},
	"end":	{
		"sum_sent":	{"bits_per_second":	8569969054.5213242, "sender":	true},
		"sum_received":	{"seconds":	1.002148, "bytes":	1066926080, "bits_per_second":	8517113879.3870764}
	}
}
"""
IPERF3_REFUSED = """{
	"start":	{"connected":	[], "version":	"iperf 3.12"},
	"intervals":	[],
	"end":	{
	},
	"error":	"unable to connect to server: Connection refused"
}
"""

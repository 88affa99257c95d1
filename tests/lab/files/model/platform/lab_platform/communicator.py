"""All-reduce over TCP. The stock one takes ranks whose group has one name for ranks that share memory; hosts do not."""

from vllm.distributed.device_communicators.cpu_communicator import CpuCommunicator


class OverTheNetwork(CpuCommunicator):
    def _all_group_ranks_share_shm_group_name(self) -> bool:
        return False

"""vLLM's own CPU platform, with the two answers that keep it from crossing hosts changed."""

from vllm.platforms.cpu import CpuPlatform


class RayOnCpu(CpuPlatform):
    # Empty in the stock platform, by which it says that it does not do Ray. Ray then places one rank per pretended GPU.
    ray_device_key: str = "GPU"

    @classmethod
    def get_device_communicator_cls(cls) -> str:
        return "lab_platform.communicator.OverTheNetwork"

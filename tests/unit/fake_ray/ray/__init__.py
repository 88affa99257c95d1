"""What strixd/probe uses of Ray, without Ray: the cluster is the JSON file named by FAKE_RAY."""

__version__ = "2.60.0"

"""Captures over the network: client and server of `tensorflow.ProfilerService`, as TensorFlow and JAX offer it.

    client side:  addresses -> reach -> worker -> fan_out
    server side:  service -> handlers -> continuous, monitor

Users call `stepscope.capture.client` and `stepscope.capture.server`.  grpcio and protobuf are imported only when one of
them is used.
"""

"""Captures over the network: both sides of the `tensorflow.ProfilerService` that TensorFlow's and JAX's servers offer.

    client side:  addresses -> reach -> worker -> fan_out
    server side:  service -> handlers -> continuous, monitor

`stepscope.capture.client` and `stepscope.capture.server` are what users call.  grpcio and protobuf are imported only
once one of them is used.
"""

"""Models of responses: what the OpenAPI description shows, and what generated clients return.

A response is not validated when it is sent. The tests validate every response of the suite against its model.
"""

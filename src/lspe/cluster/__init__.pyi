from .jobs import encode_on_ray as encode_on_ray
from .jobs import predict_on_ray as predict_on_ray

"""Ops of PyTorch and TensorFlow that compute: their families, and how the frameworks write types and shapes."""

from __future__ import annotations

import re

from stepscope.vocabulary.patterns import Pattern

_BYTES = {
    "float": 4, "double": 8, "c10::half": 2, "c10::bfloat16": 2, "half": 2, "bfloat16": 2, "long": 8, "long int": 8,
    "int": 4, "short": 2, "bool": 1, "unsigned char": 1, "signed char": 1, "float32": 4, "float64": 8, "float16": 2,
    "int32": 4, "int64": 8, "uint8": 1, "int8": 1, "c10::float8_e4m3fn": 1, "c10::float8_e5m2": 1,
    "c10::float8_e4m3fnuz": 1, "c10::float8_e5m2fnuz": 1,
}  # fmt: skip
_XLA_NAMES = {
    "float": "f32", "double": "f64", "c10::half": "f16", "half": "f16", "c10::bfloat16": "bf16", "bfloat16": "bf16",
    "float32": "f32", "float64": "f64", "float16": "f16", "signed char": "s8", "int8": "s8", "unsigned char": "u8",
}  # fmt: skip
POINTWISE_TEXT = (
    r"(?:add|sub|rsub|mul|div|pow|neg|abs|sqrt|rsqrt|exp|log|tanh|sigmoid|relu|gelu|silu|clamp|clamp_min|maximum|minimum"
    r"|eq|ne|lt|le|gt|ge|where|masked_fill|addcmul|addcdiv|lerp|bitwise_\w+|logical_\w+|threshold|hardtanh|leaky_relu"
    r"|sin|cos|erf|reciprocal|square|threshold_backward|gelu_backward|silu_backward|tanh_backward|sigmoid_backward"
    r"|AddV2|Add|Sub|Mul|RealDiv|Maximum|Minimum|Relu|ReluGrad|Sqrt|Rsqrt|Square|Exp|Tanh|Sigmoid|AddN|BiasAdd"
    r"|Greater|GreaterEqual|Less|LessEqual|Equal|NotEqual|LogicalAnd|LogicalOr|LogicalNot)_?"
)
POINTWISE = Pattern(POINTWISE_TEXT)
# Of PyTorch's: how many operands they compute with; the others have two, and what follows is where the result goes.
ONE_OPERAND = Pattern(
    r"(?:neg|abs|r?sqrt|exp|log|tanh|sigmoid|relu|gelu|silu|sin|cos|erf|reciprocal|square|threshold|hardtanh|leaky_relu"
    r"|(?:bitwise|logical)_not)_?"
)
# Operations an element of an array, which operand that is, and how many arrays of its size are moved at least.
# Softmax: the largest, differences, exponentials, sum, quotients; of its gradient the products, their sum, differences
# and products with the result.  Norms: the sum, differences, squares and theirs, quotients, weight and bias; of a
# gradient the normalised input again (2), two sums with a product (3), and what is taken away for them (4).
PER_ELEMENT: dict[str, tuple[int, int, int]] = {
    name: cost
    for names, cost in (
        ("_softmax _log_softmax", (5, 0, 2)),
        ("_softmax_backward_data _log_softmax_backward_data", (4, 0, 3)),
        ("native_batch_norm cudnn_batch_norm miopen_batch_norm native_layer_norm native_group_norm", (7, 0, 2)),
        ("native_batch_norm_backward cudnn_batch_norm_backward miopen_batch_norm_backward", (9, 0, 3)),
        ("native_layer_norm_backward native_group_norm_backward", (9, 0, 3)),
        ("sum mean prod amax amin argmax argmin all any max_pool2d_with_indices avg_pool2d", (1, 0, 1)),
        ("max_pool2d_with_indices_backward avg_pool2d_backward", (1, 1, 1)),
        ("linalg_vector_norm", (2, 0, 1)),
    )
    for name in names.split()
}
THREE_OPERANDS = Pattern(r"(?:clamp|where|masked_fill|addcmul|addcdiv|lerp)_?")
ORDERS = Pattern(r"(?:arg)?sort|stable_sort|top_?k(?:v2)?|_?unique\w*|randperm|multinomial", re.IGNORECASE)
ORDERS_ALL = Pattern(r"(?:arg)?sort|stable_sort|randperm")  # and gives all of them
COMPARES = Pattern(r"(?:eq|ne|lt|le|gt|ge|logical_\w+|Greater\w*|Less\w*|\w*Equal|Logical\w+)_?")
# What torch's ops do with a tensor's rows: take some, repeat them, look at them in another way, treat each by itself.
PICKS = Pattern(r"select|slice|narrow|index|index_select|gather|masked_select|take_along_dim")
JOINS = Pattern(r"stack|cat|concat")
REPEATS = Pattern(r"repeat|repeat_interleave|tile|expand")
VIEWS = Pattern(
    r"view|reshape|unsqueeze|squeeze|transpose|permute|flatten|unflatten|t|mT|contiguous|clone|detach|alias|expand"
    r"|_unsafe_view|swapaxes|movedim|view_as|expand_as|numpy_T|adjoint|result_type|to"
)
KEEPS_ROWS = Pattern(
    rf"{POINTWISE_TEXT}|layer_norm|rms_norm|softmax|log_softmax|dropout|feature_dropout|gelu|silu|elu|selu|softplus"
    r"|mish|hardswish|leaky_relu|prelu|glu|normalize"
)
OF_LABELS = Pattern(r"cross_entropy_loss|nll_loss\w*")  # whose second operand are the numbers of classes
FACTORS = Pattern(
    r"(?:linalg_)?(?:cholesky(?:_ex)?|inv(?:_ex)?|svd|svdvals|qr|eigh|eigvalsh|eig|lu|lu_factor|pinv|lstsq|matrix_exp"
    r"|det|slogdet|ldl_factor)|linalg_solve|inverse|pinverse|logdet|schur|householder_product"
    r"|Svd|Qr|SelfAdjointEig(?:V2)?|Eig|Cholesky|MatrixInverse|MatrixDeterminant|LogMatrixDeterminant|MatrixSquareRoot|Lu"
)
INVERTS = Pattern(r"(?:linalg_)?inv(?:_ex)?|inverse|MatrixInverse")
RESETS = Pattern(r"(?:_foreach_)?zero_")
TRANSFORMS = Pattern(r"_fft_(?:r2c|c2r|c2c)")
CONVOLVES = Pattern(r"(?:mkldnn_|cudnn_|_)?conv(?:olution|_transpose[123]d|[123]d)")
DRAWS = Pattern(  # another value each time, or none that is set, or of operands that no recording holds
    r"rand\w*|normal_?|bernoulli\w*|multinomial|poisson|uniform_|exponential_|geometric_|\w*dropout\w*|rrelu\w*"
    r"|(?:new_)?empty\w*|resize_|binomial|_sample_dirichlet|_standard_gamma|random_|from_file|scalar_tensor|lift_fresh\w*"
    r"|\w*index|\w*index_put\w*"
)
MAKES_OF_SIZE = Pattern(r"zeros|ones|full|empty|randn?|randint|normal")  # a list of sides is among its operands
SUMS_UP = Pattern(
    r"sum|mean|argmax|argmin|amax|amin|prod|all|any|var|std|logsumexp|count_nonzero"
)  # over all or some sides
GIVES_NUMBERS = Pattern(  # its result has another size than its operands
    r"\w*loss\w*|\w*norm|max|min|\w*_like|eye|arange|cat|stack|split\w*|chunk"
    r"|unbind|topk|sort|select|slice|narrow|index\w*|gather|embedding\w*|one_hot|diag\w*|item|nonzero"
    r"|repeat\w*|tile|outer|einsum|\w*pool\w*|conv\w*|cdist|linalg_(?!inv$|matrix_exp$|cholesky$|solve$).*"
)
LOOKS_AT = Pattern(  # its result is in the storage of its operand
    r"view|unsqueeze|squeeze|transpose|permute|t|m?[TH]|detach|alias|expand|expand_as|view_as|_unsafe_view|swapaxes"
    r"|movedim|numpy_T|adjoint|select|slice|narrow|unbind|split\w*|chunk|tensor_split|diagonal|real|imag|unflatten"
    r"|as_strided|unfold|conj|broadcast_t\w+"
)
MAY_LOOK_AT = Pattern(r"reshape|contiguous|flatten|to|type_as|reshape_as|resolve_conj|resolve_neg|view_as_\w+")
GIVES_SEVERAL = Pattern(
    r"unbind|split\w*|chunk|tensor_split|topk|sort|max|min|mode|median|cummax|cummin|meshgrid|svd|qr|var_mean|std_mean"
    r"|_?(?:thnn_)?\w*(?:lstm|gru)\w*|linalg_(?:svd|qr|eigh?|lu\w*|inv_ex|cholesky_ex|slogdet|lstsq)|\w*frexp|_unique\w*"
)
ADDS_OR_SCALES = Pattern(r"(?:add|sub|rsub|mul|div)_?")
REDUCES = Pattern(r"sum|mean|norm|linalg_vector_norm|linalg_norm")
ATTENTION = Pattern(r"_?(?:flash|efficient|scaled_dot_product_\w+)_?attention(?P<pass>_forward|_backward)?")
PADDING_FIRST = ("cudnn_convolution", "miopen_convolution", "mkldnn_convolution", "miopen_depthwise_convolution")
_TF_PRODUCTS = Pattern(r"(?:Batch)?MatMul(?:V2)?|_FusedMatMul|Einsum|Conv[123]D\w*|_FusedConv2D|dot|convolution|fusion")
_TF_SHAPE = r"(?P<type>[a-z]+\d*)\[(?P<dims>(?:\d{1,15}(?:,|(?=\])))*)\]"

PRODUCTS = ("mm", "addmm", "bmm", "baddbmm", "linear", "_addmm_activation")
CONVOLUTIONS = ("convolution", "_convolution", "conv2d", "conv1d", "conv3d", *PADDING_FIRST)
GRADIENT_OF_INPUT = ("cudnn_convolution_backward_input", "miopen_convolution_backward_input")
GRADIENT_OF_KERNEL = ("cudnn_convolution_backward_weight", "miopen_convolution_backward_weight")
# Where the image, the gradient and the kernel stand among the operands of a convolution's whole gradient.
CONVOLUTION_GRADIENTS = {
    "convolution_backward": (1, 0, 2),
    **dict.fromkeys(("cudnn_convolution_backward", "miopen_convolution_backward"), (0, 1, 2)),
}
COPIES = ("copy_", "cat", "_to_copy", "clone", "contiguous", "fill_", "zero_")
COPIES_WITH_ONE_INPUT = ("_to_copy", "clone", "contiguous")


def strip_library(op: str) -> str:
    """An op's name without its library.

    >>> strip_library("aten::mm")
    'mm'
    """
    return op.rpartition("::")[2]


def multiplies(op: str) -> bool:
    """Whether an op multiplies matrices, convolves or attends: what a model does most of its work in.

    >>> multiplies("aten::addmm"), multiplies("model/dense/MatMul:MatMul"), multiplies("aten::to")
    (True, True, False)
    """
    name = op_alone(strip_library(op))
    return name in PRODUCTS or any(each.fullmatch(name) is not None for each in (CONVOLVES, ATTENTION, _TF_PRODUCTS))


def op_alone(name: str) -> str:
    """What an op is, without its library, its place in a graph and its number in a program.

    >>> op_alone("aten::sort"), op_alone("model/top/TopKV2:TopKV2"), op_alone("sort.3")
    ('sort', 'TopKV2', 'sort')
    """
    return name.rpartition(":")[2].partition(".")[0]


def element_bytes(type_name: str) -> int | None:
    """Bytes per element of a type; None if the type is unknown or not an array's."""
    return _BYTES.get(type_name.lower())


def xla_type(type_name: str) -> str:
    """XLA's name of a type; the type itself if XLA has no other name for it.

    >>> xla_type("c10::BFloat16"), xla_type("float")
    ('bf16', 'f32')
    """
    lower = type_name.lower()
    return _XLA_NAMES.get(lower, "f8e4m3fn" if "float8" in lower else lower)


def shapes_in_annotation(text: str) -> list[tuple[str, list[int]]]:
    """The types and sizes in TensorFlow's annotation of an op.

    >>> shapes_in_annotation("(half[8,4];half[])")
    [('half', [8, 4]), ('half', [])]
    """
    found = re.finditer(_TF_SHAPE, text)
    return [(match["type"], [int(size) for size in match["dims"].split(",") if size]) for match in found]

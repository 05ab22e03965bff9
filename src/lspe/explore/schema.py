"""What the JSON API takes and gives."""

from typing import Annotated, Literal

from pydantic import AfterValidator, BaseModel, ConfigDict, Field

from lspe.data.words import TaskKind
from lspe.encodings.kinds import KINDS, Level

MAX_TEXT = 1000
MAX_ATOMS = 200
MAX_STEPS = 40
DEFAULT_STEPS = 24

_Text = Annotated[str, Field(min_length=1, max_length=MAX_TEXT, pattern=r"^[\x20-\x7e]+$")]
_ASPIRIN = "CC(=O)Oc1ccccc1C(=O)O"
GraphText = Annotated[_Text, Field(description="A SMILES string, or the name of an example.", examples=[_ASPIRIN])]
SmilesText = Annotated[_Text, Field(description="A SMILES string.", examples=[_ASPIRIN])]


def _known(name: str) -> str:
    if name not in KINDS:  # an import path is not for strangers to choose
        raise ValueError(f"there is no encoding {name!r}; there are {', '.join(KINDS)}")
    return name


EncodingName = Annotated[
    str, AfterValidator(_known), Field(description="A kind of encoding.", json_schema_extra={"enum": [*KINDS]})
]
Steps = Annotated[int, Field(ge=1, le=MAX_STEPS, description="Number of columns of the encoding.")]


class Query(BaseModel):
    """A question; keys that are not known are refused."""

    model_config = ConfigDict(extra="forbid")


class EncodeQuery(Query):
    """A graph to encode."""

    graph: GraphText
    encoding: EncodingName = "rwpe"
    k: Steps = DEFAULT_STEPS
    origin: Annotated[
        int, Field(ge=0, lt=MAX_ATOMS, description="For an encoding of pairs: the node from which all are seen.")
    ] = 0


class CompareQuery(Query):
    """Two graphs to tell apart."""

    first: GraphText
    second: GraphText
    encoding: EncodingName = "rwpe"
    k: Steps = DEFAULT_STEPS
    elements: Annotated[bool, Field(description="Whether elements count, or only who is bonded to whom.")] = False


class Node(BaseModel):
    """An atom (or another node): what to write on it, and where it is; y points upwards."""

    label: str
    x: float
    y: float


class Edge(BaseModel):
    """A bond between two nodes, given by their numbers from 0."""

    first: int
    second: int
    order: int


class Stroke(BaseModel):
    """A path of SVG: an outline to fill, or a line of this width."""

    path: str
    filled: bool
    width: float


class Picture(BaseModel):
    """How RDKit draws a molecule, with wedges, charges and hydrogens; a node is at origin + unit · (x, −y)."""

    strokes: list[Stroke]
    origin: tuple[float, float]
    unit: float


class Drawing(BaseModel):
    """A graph, ready to be drawn."""

    nodes: list[Node]
    edges: list[Edge]
    picture: Annotated[Picture | None, Field(description="Null for a graph that is no molecule.")]


class EncodedGraph(Drawing):
    """A graph, how to draw it, and its encoding."""

    title: str
    is_molecule: bool
    encoding: Annotated[list[list[float]], Field(description="A row per node, a column per step.")]
    kinds: Annotated[
        list[list[int]],
        Field(
            description="A row a step k, a column a node: nodes with equal numbers agree in the first k columns. "
            "Numbers follow the order of the encodings, so a kind splits into neighbouring ones."
        ),
    ]


class Verdict(BaseModel):
    """What a test says: the first step at which the graphs differ, null if they never do."""

    verdict: Literal["non-isomorphic", "possibly isomorphic"]
    step: int | None


class ComparedGraphs(BaseModel):
    """Two graphs, with kinds counted through both of them, and what the tests say."""

    first: EncodedGraph
    second: EncodedGraph
    random_walk: Verdict
    weisfeiler_lehman: Verdict
    encodings: Annotated[
        dict[str, int | None],
        Field(description="The first column at which each kind of encoding tells them apart, null if none does."),
    ]
    summary: str


class Kind(BaseModel):
    """A kind of encoding."""

    name: str
    title: str
    columns: Annotated[str, Field(description="What its columns are.")]
    level: Annotated[Level, Field(description="Whether nodes have it, or pairs of nodes.")]
    comparable: Annotated[bool, Field(description="Whether equal nodes of two graphs have equal encodings.")]
    equation: Annotated[str, Field(description="In LaTeX.")]


class ExampleGraph(BaseModel):
    """Something to try: the text to send as graph, and perhaps one to compare it with."""

    title: str
    first: str
    second: str | None = None
    about: str


class Problem(BaseModel):
    """What went wrong, in words."""

    error: str


class MoleculeQuery(Query):
    """A molecule to predict."""

    smiles: SmilesText


class RunAbout(BaseModel):
    """The trained network behind this page; several runs are an ensemble."""

    name: str
    networks: int
    task: TaskKind
    targets: list[str]
    layers: int
    learns_positions: bool


class About(BaseModel):
    """What this page can do."""

    version: str
    run: Annotated[RunAbout | None, Field(description="Null where the explorer was started without a run.")]


class Value(BaseModel):
    """A predicted value in its original unit, or a probability; `sd` is the spread over the networks of an ensemble.

    The true value is between `low` and `high` in 90 % of cases; null where that is not known.
    """

    name: str
    value: float
    sd: float | None
    low: float | None
    high: float | None


class Prediction(BaseModel):
    """What the run predicts for a molecule."""

    values: list[Value]


class Part(BaseModel):
    """Something that adds to a prediction."""

    name: str
    value: float


class ExplainedValue(BaseModel):
    """What adds up to one predicted value."""

    name: str
    value: float
    parts: Annotated[list[Part], Field(description="They add up to the value.")]
    atoms: Annotated[list[float], Field(description="What each atom adds, its position included.")]
    positions: Annotated[list[float], Field(description="What of it is due to the atom's position in the graph.")]
    bonds: Annotated[list[float], Field(description="What each bond adds, in the order of the edges.")]


class Label(BaseModel):
    """What is known of a molecule: a number, a class, or nothing."""

    name: str
    value: float | str | None


class NearMolecule(Drawing):
    """A molecule of the training set, and how similar it is, at most 1."""

    smiles: str
    name: str
    labels: list[Label]
    tanimoto: Annotated[float, Field(description="Of Morgan fingerprints.")]
    learned: Annotated[float, Field(description="Of what the first network reads out of both.")]


class Explained(Drawing):
    """Why the run predicts what it does: which atoms and bonds push it, and which training molecules are near."""

    title: str
    values: list[ExplainedValue]
    networks: Annotated[
        float, Field(description="The weight of the networks; a forest, which has the rest, looks at no single atom.")
    ]
    near: list[NearMolecule]


class Positions(Drawing):
    """The learned positions of each atom after each layer; the first is the embedded encoding."""

    title: str
    layers: Annotated[
        list[list[list[float]]],
        Field(
            description="Layer, atom, principal component: p relative to its layer's mean, in the axes along which it "
            "varies most over all layers."
        ),
    ]
    explained: Annotated[float, Field(description="The part of the variance that these components keep.")]
    change: Annotated[
        list[float], Field(description="How far an atom moves in each layer on average, relative to the size of p.")
    ]

"""Numbers that describe a molecule as a whole: RDKit's descriptors, and Morgan fingerprints.

They need no training, so they help most where molecules are few: beside what a network reads out of the atoms
(``model.descriptors``), and as all that a forest knows (:mod:`lspe.forest`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import cache, partial
from typing import Any

import numpy as np
from rdkit import rdBase
from rdkit.Chem import Mol

from lspe.data.errors import DataError
from lspe.data.molecules.limits import FULLY_DESCRIBED
from lspe.data.molecules.processes import Refused, map_in_processes, processes_for
from lspe.data.molecules.smiles import Readings, parse_here, read_smiles
from lspe.data.packed.container import Array
from lspe.data.progress import progress_bar
from lspe.data.words import DESCRIPTOR_WIDTH, DescriptorKind, Fragments
from lspe.features import Features

_RDKIT = """
MaxAbsEStateIndex MaxEStateIndex MinAbsEStateIndex MinEStateIndex MolWt HeavyAtomMolWt ExactMolWt NumValenceElectrons
NumRadicalElectrons MaxPartialCharge MinPartialCharge MaxAbsPartialCharge MinAbsPartialCharge FpDensityMorgan1
FpDensityMorgan2 FpDensityMorgan3 BCUT2D_MWHI BCUT2D_MWLOW BCUT2D_CHGHI BCUT2D_CHGLO BCUT2D_LOGPHI BCUT2D_LOGPLOW
BCUT2D_MRHI BCUT2D_MRLOW BalabanJ BertzCT Chi0 Chi0n Chi0v Chi1 Chi1n Chi1v Chi2n Chi2v Chi3n Chi3v Chi4n Chi4v
HallKierAlpha Kappa1 Kappa2 Kappa3 LabuteASA PEOE_VSA1 PEOE_VSA10 PEOE_VSA11 PEOE_VSA12 PEOE_VSA13 PEOE_VSA14
PEOE_VSA2 PEOE_VSA3 PEOE_VSA4 PEOE_VSA5 PEOE_VSA6 PEOE_VSA7 PEOE_VSA8 PEOE_VSA9 SMR_VSA1 SMR_VSA10 SMR_VSA2 SMR_VSA3
SMR_VSA4 SMR_VSA5 SMR_VSA6 SMR_VSA7 SMR_VSA8 SMR_VSA9 SlogP_VSA1 SlogP_VSA10 SlogP_VSA11 SlogP_VSA12 SlogP_VSA2
SlogP_VSA3 SlogP_VSA4 SlogP_VSA5 SlogP_VSA6 SlogP_VSA7 SlogP_VSA8 SlogP_VSA9 TPSA EState_VSA1 EState_VSA10
EState_VSA11 EState_VSA2 EState_VSA3 EState_VSA4 EState_VSA5 EState_VSA6 EState_VSA7 EState_VSA8 EState_VSA9
VSA_EState1 VSA_EState10 VSA_EState2 VSA_EState3 VSA_EState4 VSA_EState5 VSA_EState6 VSA_EState7 VSA_EState8
VSA_EState9 FractionCSP3 HeavyAtomCount NHOHCount NOCount NumAliphaticCarbocycles NumAliphaticHeterocycles
NumAliphaticRings NumAromaticCarbocycles NumAromaticHeterocycles NumAromaticRings NumHAcceptors NumHDonors
NumHeteroatoms NumRotatableBonds NumSaturatedCarbocycles NumSaturatedHeterocycles NumSaturatedRings RingCount MolLogP
MolMR fr_Al_COO fr_Al_OH fr_Al_OH_noTert fr_ArN fr_Ar_COO fr_Ar_N fr_Ar_NH fr_Ar_OH fr_COO fr_COO2 fr_C_O fr_C_O_noCOO
fr_C_S fr_HOCCN fr_Imine fr_NH0 fr_NH1 fr_NH2 fr_N_O fr_Ndealkylation1 fr_Ndealkylation2 fr_Nhpyrrole fr_SH
fr_aldehyde fr_alkyl_carbamate fr_alkyl_halide fr_allylic_oxid fr_amide fr_amidine fr_aniline fr_aryl_methyl fr_azide
fr_azo fr_barbitur fr_benzene fr_benzodiazepine fr_bicyclic fr_diazo fr_dihydropyridine fr_epoxide fr_ester fr_ether
fr_furan fr_guanido fr_halogen fr_hdrzine fr_hdrzone fr_imidazole fr_imide fr_isocyan fr_isothiocyan fr_ketone
fr_ketone_Topliss fr_lactam fr_lactone fr_methoxy fr_morpholine fr_nitrile fr_nitro fr_nitro_arom
fr_nitro_arom_nonortho fr_nitroso fr_oxazole fr_oxime fr_para_hydroxylation fr_phenol fr_phenol_noOrthoHbond
fr_phos_acid fr_phos_ester fr_piperdine fr_piperzine fr_priamide fr_prisulfonamd fr_pyridine fr_quatN fr_sulfide
fr_sulfonamd fr_sulfone fr_term_acetylene fr_tetrazole fr_thiazole fr_thiocyan fr_thiophene fr_unbrch_alkane fr_urea
"""
RDKIT_NAMES = tuple(_RDKIT.split())
"""RDKit's descriptors of 2024.03, so that a newer RDKit gives a network what it was trained with.

Left out: qed and SPS, which take as long as all others, and Ipc, which overflows.
"""

_OF_DISTANCES = {"BalabanJ", "BertzCT", *(name for name in RDKIT_NAMES if "BCUT2D" in name or "EState" in name)}
_OF_PATHS = {"Chi2n", "Chi2v", "Chi3n", "Chi3v", "Chi4n", "Chi4v", "Kappa2", "Kappa3"}
_PATH_LENGTH = 4
_MOST_WALKS = 20_000
_FEW_BONDS = 30
"""Too few for many walks: even of eight atoms all bonded to each other there are less than 20,000."""

MORGAN_RADIUS = 2

_LARGEST = 1e6
_AT_ONCE = 100
_WORTH_PROCESSES = 400


def describe(
    smiles: Sequence[str], kind: DescriptorKind, *, fragments: Fragments = "keep", processes: int | None = None
) -> Array:
    """Descriptors of molecules, one row per SMILES.

    ``rdkit``: [M, 206] float32, NaN where one is not defined for the molecule or would take too long (those of
    distances beyond 500 atoms, those of paths where there are very many), nothing beyond ±10⁶. ``morgan``:
    [M, 2048] uint8, how often each environment of radius 2 occurs, folded. The SMILES must be readable.
    """
    return np.concatenate(list(iter_described(smiles, kind, fragments=fragments, processes=processes)))


def iter_described(
    smiles: Sequence[str], kind: DescriptorKind, *, fragments: Fragments = "keep", processes: int | None = None
) -> Iterator[Array]:
    """What :func:`describe` gives, some rows at a time; first none of them, which has the right shape and type."""
    pieces = (smiles[begin : begin + _AT_ONCE] for begin in range(0, len(smiles), _AT_ONCE))
    if processes is None:
        processes = 1 if len(smiles) < _WORTH_PROCESSES else processes_for(len(smiles) * 10)
    yield _OF_KIND[kind]([])
    with progress_bar(f"{kind} descriptors", len(smiles)) as advance:
        for part in map_in_processes(
            partial(describe_here, kind=kind, fragments=fragments), pieces, processes=processes
        ):
            yield part
            advance(len(part))


def describe_here(smiles: Sequence[str], kind: DescriptorKind, fragments: Fragments = "keep") -> Array:
    """What :func:`describe` gives, in this process; nothing is known of molecules that must not be read here."""
    return _OF_KIND[kind]([None if isinstance(one, Refused) else parse_here(one, fragments) for one in smiles])


def read_described(
    smiles: Sequence[str], features: Features, fragments: Fragments, kinds: Sequence[DescriptorKind]
) -> tuple[Readings, dict[DescriptorKind, Array]]:
    """The graphs of SMILES, and descriptors of those that could be read."""
    reading = read_smiles(smiles, features, fragments=fragments)
    readable = [smiles[row] for row in reading.rows.tolist()]
    return reading, {kind: describe_here(readable, kind, fragments) for kind in kinds}


def _rdkit(mols: Sequence[Mol | None]) -> Array:
    values = np.full((len(mols), len(RDKIT_NAMES)), np.nan)
    with rdBase.BlockLogs():
        for row, mol in enumerate(mols):
            if mol is None:
                continue
            unasked = _too_costly(mol)
            for column, (name, function) in enumerate(_functions()):
                if name in unasked:
                    continue
                try:
                    values[row, column] = function(mol)
                except (ValueError, RuntimeError, ArithmeticError):  # partial charges of a metal, for instance
                    continue
    values[~np.isfinite(values)] = np.nan
    return np.clip(values, -_LARGEST, _LARGEST).astype(np.float32)


def _too_costly(mol: Mol) -> set[str]:
    """Descriptors that would take seconds to years: of distances in large molecules, of paths in dense ones."""
    unasked: set[str] = set()
    if mol.GetNumAtoms() > FULLY_DESCRIBED:
        unasked |= _OF_DISTANCES
    if mol.GetNumBonds() > _FEW_BONDS:
        walks: Array = np.ones(mol.GetNumAtoms())
        ends = np.array([(bond.GetBeginAtomIdx(), bond.GetEndAtomIdx()) for bond in mol.GetBonds()]).T
        for _ in range(_PATH_LENGTH):
            walks = np.bincount(ends.ravel(), weights=walks[ends[::-1].ravel()], minlength=len(walks))
        if walks.sum() > _MOST_WALKS:
            unasked |= _OF_PATHS
    return unasked


def _morgan(mols: Sequence[Mol | None]) -> Array:
    from rdkit.Chem.rdFingerprintGenerator import GetMorganGenerator

    generator: Any = GetMorganGenerator(MORGAN_RADIUS, fpSize=DESCRIPTOR_WIDTH["morgan"])
    counts = np.zeros((len(mols), DESCRIPTOR_WIDTH["morgan"]), dtype=np.uint8)
    for row, mol in enumerate(mols):
        if mol is not None:
            counts[row] = np.minimum(generator.GetCountFingerprintAsNumPy(mol), 255)
    return counts


_OF_KIND: dict[DescriptorKind, Callable[[Sequence[Mol | None]], Array]] = {"rdkit": _rdkit, "morgan": _morgan}


@cache
def _functions() -> tuple[tuple[str, Callable[[Mol], float]], ...]:
    """RDKit's functions by their names; the E-state indices of a molecule, which four of them take, are found once."""
    from rdkit.Chem import Descriptors

    known = dict(Descriptors.descList)
    missing = [name for name in RDKIT_NAMES if name not in known]
    if missing:
        raise DataError(f"this RDKit has no descriptor {missing[0]!r}: install rdkit>=2024.3.1")
    known |= {name: partial(known[name], force=False) for name in RDKIT_NAMES if name.endswith("EStateIndex")}
    return tuple((name, known[name]) for name in RDKIT_NAMES)

"""Where the raw files of each data set come from: facts, no code.

Checksums are those of the publishers' files, where they are known.
"""

from __future__ import annotations

from dataclasses import dataclass

# Two-letter codes of the states, the District of Columbia and Puerto Rico, with the numbers that
# the Census Bureau gives them. The paper's data are without the District.
STATES = {
    "AL": 1, "AK": 2, "AZ": 4, "AR": 5, "CA": 6, "CO": 8, "CT": 9, "DE": 10, "DC": 11, "FL": 12,
    "GA": 13, "HI": 15, "ID": 16, "IL": 17, "IN": 18, "IA": 19, "KS": 20, "KY": 21, "LA": 22,
    "ME": 23, "MD": 24, "MA": 25, "MI": 26, "MN": 27, "MS": 28, "MO": 29, "MT": 30, "NE": 31,
    "NV": 32, "NH": 33, "NJ": 34, "NM": 35, "NY": 36, "NC": 37, "ND": 38, "OH": 39, "OK": 40,
    "OR": 41, "PA": 42, "RI": 44, "SC": 45, "SD": 46, "TN": 47, "TX": 48, "UT": 49, "VT": 50,
    "VA": 51, "WA": 53, "WV": 54, "WI": 55, "WY": 56, "PR": 72,
}  # fmt: skip
PAPER_STATES = tuple(state for state in STATES if state != "DC")


@dataclass(frozen=True)
class RawFile:
    """One file in the data folder, and where it can be had.

    `others` are names under which it may also lie there, unpacked or packed differently. `state`
    is that of a file of which each state has one.
    """

    path: str
    url: str | None = None
    sha256: str | None = None
    others: tuple[str, ...] = ()
    state: str | None = None


@dataclass(frozen=True)
class Source:
    """What is known of a data set without opening it."""

    name: str
    title: str
    n_samples: int
    citation: str
    page: str
    licence: str
    files: tuple[RawFile, ...]


_UCI = "https://archive.ics.uci.edu/ml/machine-learning-databases"
_CENSUS = "https://www2.census.gov/programs-surveys/acs/data/pums/2018/1-Year"
_PUBLIC_DOMAIN = "public domain (work of the US government)"
_PERSON_CHECKSUMS = {
    "ID": "ea743376f02ef0a0b8b00599e238e47a6073e368e8bda97fa6305da8c5dbfa91",
    "ME": "2a718c75dc732d2b4ca823bd0aee12c940b087494ef3b7a0caef0534165b7cc7",
    "NH": "17c68e50530b61197abb9fd78a1678a5360bf05654d105501f4a5f73dccc70c8",
    "RI": "c5a7155543b1e4296420955714e3160563c4bbe9682299c2761434e4007bd331",
    "VT": "e354dc8484d234e7e328ceffb57495d3e0a8a0a8d4f2fc3cbc30b833c3ce0dde",
    "WV": "f1a39b7be0b01aef6033ca6f3f32d954d3df07c8de12dd35da8d55be65c7cef8",
}


def make_census_file(kind: str, state: str) -> RawFile:
    """The 2018 American Community Survey's file of a state's persons ("p") or households ("h")."""
    name = f"csv_{kind}{state.lower()}.zip"
    checksum = _PERSON_CHECKSUMS.get(state) if kind == "p" else None
    return RawFile(f"acs2018/{name}", f"{_CENSUS}/{name}", checksum, state=state)


def make_scorecard_file(year: str) -> RawFile:
    """The College Scorecard's file of one academic year, such as 2018_19."""
    path = f"college_scorecard/MERGED{year}_PP.csv"
    others = tuple(f"{path}.{packed}" for packed in ("bz2", "gz", "zip"))
    return RawFile(path, others=others)


_ACS = {
    "citation": "US Census Bureau, American Community Survey 2018, 1-Year Public Use Microdata "
    "Sample",
    "page": "https://www.census.gov/programs-surveys/acs/microdata.html",
    "licence": _PUBLIC_DOMAIN,
}
_ASSISTMENTS = "2012-2013-data-with-predictions-4-final"

SOURCES = {
    source.name: source
    for source in (
        Source(
            name="diabetes_readmission",
            title="Readmission of diabetes patients, 130 US hospitals",
            n_samples=99_493,
            citation="Strack et al. (2014), BioMed Research International 781670; UCI 296",
            page="https://doi.org/10.24432/C5230J",
            licence="CC BY 4.0",
            files=(
                RawFile(
                    "diabetes/dataset_diabetes.zip",
                    f"{_UCI}/00296/dataset_diabetes.zip",
                    "3a17a3b55b6dd4a1926703185c0ad8e2ed30bc8e2f9b927cdd1000b733d1de8e",
                    others=("diabetes/diabetic_data.csv",),
                ),
            ),
        ),
        Source(
            name="acs_income",
            title="Income above 56,000 dollars, working adults in the US",
            n_samples=1_664_500,
            files=tuple(make_census_file("p", state) for state in STATES),
            **_ACS,
        ),
        Source(
            name="acs_foodstamps",
            title="Food stamps in low-income US households",
            n_samples=840_582,
            files=tuple(make_census_file(kind, state) for state in STATES for kind in "ph"),
            **_ACS,
        ),
        Source(
            name="college_scorecard",
            title="Completion rate above one half, US colleges",
            n_samples=6_806,  # of the academic year 2018/19; the paper's has all years to 2013
            citation="US Department of Education, College Scorecard, institution-level data",
            page="https://collegescorecard.ed.gov/data/",
            licence=_PUBLIC_DOMAIN,
            files=(make_scorecard_file("2018_19"),),
        ),
        Source(
            name="assistments",
            title="Problems solved in an online mathematics tutor",
            n_samples=2_667_776,
            citation="Feng, Heffernan and Koedinger (2009), User Modeling 19:243; ASSISTments",
            page="https://sites.google.com/site/assistmentsdata/datasets/"
            "2012-13-school-data-with-affect",
            licence="none stated; for research, see the publisher's page",
            files=(
                RawFile(
                    f"assistments/{_ASSISTMENTS}.csv",
                    others=(f"assistments/{_ASSISTMENTS}.zip",),
                ),
            ),
        ),
        Source(
            name="meps",
            title="Use of health care, US households",
            n_samples=26_402,
            citation="Agency for Healthcare Research and Quality, Medical Expenditure Panel "
            "Survey, HC-216, 2019 Full Year Consolidated Data File",
            page="https://meps.ahrq.gov/mepsweb/data_stats/"
            "download_data_files_detail.jsp?cboPufNumber=HC-216",
            licence="public use under the publisher's data use agreement",
            files=(
                RawFile(
                    "meps/h216dta.zip",
                    "https://meps.ahrq.gov/mepsweb/data_files/pufs/h216/h216dta.zip",
                    others=("meps/h216.dta",),
                ),
            ),
        ),
        Source(
            name="heart_disease",
            title="Coronary heart disease in four hospitals",
            n_samples=920,
            citation="Detrano et al. (1989), American Journal of Cardiology 64:304; UCI 45",
            page="https://doi.org/10.24432/C52P4X",
            licence="CC BY 4.0",
            files=tuple(
                RawFile(
                    f"heart_disease/processed.{hospital}.data",
                    f"{_UCI}/heart-disease/processed.{hospital}.data",
                )
                for hospital in ("cleveland", "hungarian", "switzerland", "va")
            ),
        ),
        Source(
            name="sachs",
            title="Protein signalling in T cells under eight experiments",
            n_samples=6_564,
            citation="Sachs, Perez, Pe'er, Lauffenburger and Nolan (2005), Science 308:523, "
            "supplementary data, log abundances of all cells in one table",
            page="https://doi.org/10.1126/science.1105809",
            licence="none stated; see the publisher's page",
            files=(RawFile("sachs/sachs_conditions.csv"),),
        ),
    )
}

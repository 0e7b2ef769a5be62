"""What each real data set consists of: facts, no code.

The six tasks of the paper's real-data study, with their labels, environments and features, are
those of the TableShift benchmark (Gardner, Popovic and Schmidt 2023, https://tableshift.org; MEPS
was added by its extension). Which features are causal is the judgement of Nastl and Hardt (2024),
"Do causal predictors generalize better to new domains?", https://arxiv.org/abs/2402.09891.
Names are those of the publishers' own files.
"""

from __future__ import annotations

from dataclasses import dataclass
from types import MappingProxyType


@dataclass(frozen=True)
class Task:
    """The columns of one data set and what is known of them.

    `features` in the order in which X has them; those not in `categories` are numbers. The
    feature `environment` says which environment a row belongs to: with two, the second holds the
    rows whose value is one of `shifted` (out of distribution). `causal` leaves it out.
    """

    features: tuple[str, ...]
    categories: frozenset[str]
    environment: str
    causal: tuple[str, ...]
    shifted: tuple[float, ...] = ()

    @property
    def numbers(self) -> tuple[str, ...]:
        """The features that are numbers, in order."""
        return tuple(name for name in self.features if name not in self.categories)


def _names(text: str) -> tuple[str, ...]:
    return tuple(text.split())


def _make_task(
    environment: str,
    features: str,
    causal: str,
    shifted: tuple[float, ...] = (),
    categories: str = "",
    numbers: str = "",
) -> Task:
    """From names in one text; of categories and numbers, the fewer are listed."""
    names, listed = _names(features), {*_names(categories)}
    kinds = frozenset(listed or {*names} - {*_names(numbers)})
    return Task(names, kinds, environment, _names(causal), shifted)


DIABETES = _make_task(
    environment="admission_source_id",
    shifted=(7,),  # the emergency room
    features="""
        race gender age weight admission_type_id discharge_disposition_id admission_source_id
        time_in_hospital payer_code medical_specialty num_lab_procedures num_procedures
        num_medications number_outpatient number_emergency number_inpatient diag_1 diag_2 diag_3
        number_diagnoses max_glu_serum A1Cresult metformin repaglinide nateglinide chlorpropamide
        glimepiride acetohexamide glipizide glyburide tolbutamide pioglitazone rosiglitazone
        acarbose miglitol troglitazone tolazamide examide citoglipton insulin glyburide-metformin
        glipizide-metformin glimepiride-pioglitazone metformin-rosiglitazone metformin-pioglitazone
        change diabetesMed
    """,
    numbers="""
        admission_type_id discharge_disposition_id admission_source_id time_in_hospital
        num_lab_procedures num_procedures num_medications number_outpatient number_emergency
        number_inpatient number_diagnoses
    """,
    causal="race gender age payer_code medical_specialty",
)

ACS_INCOME = _make_task(
    environment="DIVISION",
    shifted=(1,),  # New England
    features="""
        COW ENG FER HINS1 HINS2 HINS3 HINS4 NWLA NWLK OCCP POBP RELP WKHP WKW WRK AGEP SEX ST MAR
        CIT RAC1P SCHL DIVISION ACS_YEAR
    """,
    numbers="WKHP WKW AGEP SEX RAC1P ACS_YEAR",
    causal="AGEP SEX RAC1P POBP",
)

ACS_FOODSTAMPS = _make_task(
    environment="DIVISION",
    shifted=(6,),  # East South Central
    features="""
        ENG FER HUPAC WIF NWLA NWLK OCCP POBP RELP WKHP WKW WRK DIS MIL ANC NATIVITY DEAR DEYE DREM
        PUBCOV AGEP SEX ST MAR CIT RAC1P SCHL DIVISION ACS_YEAR
    """,
    numbers="HUPAC WIF WKHP WKW AGEP SEX RAC1P ACS_YEAR",
    causal="AGEP SEX RAC1P POBP DIS ANC NATIVITY DEAR DEYE DREM ST MAR",
)

COLLEGE_SCORECARD = _make_task(
    environment="CCBASIC",
    features="""
        STABBR ACCREDAGENCY SCH_DEG MAIN NUMBRANCH HIGHDEG CONTROL REGION LOCALE LOCALE2 CCBASIC
        CCSIZSET HBCU ADM_RATE ADM_RATE_ALL SATVRMID SATMTMID SATWRMID ACTCMMID ACTENMID ACTMTMID
        ACTWRMID PCIP01 PCIP03 PCIP04 PCIP05 PCIP09 PCIP10 PCIP11 PCIP12 PCIP13 PCIP14 PCIP15 PCIP16
        PCIP19 PCIP22 PCIP23 PCIP24 PCIP25 PCIP26 PCIP27 PCIP29 PCIP30 PCIP31 PCIP38 PCIP39 PCIP40
        PCIP41 PCIP42 PCIP43 PCIP44 PCIP45 PCIP46 PCIP47 PCIP48 PCIP49 PCIP50 PCIP51 PCIP52 PCIP54
        DISTANCEONLY UGDS UG UGDS_WHITE UGDS_BLACK UGDS_HISP UGDS_ASIAN UGDS_AIAN UGDS_NHPI
        UGDS_2MOR UGDS_NRA UGDS_UNKN UGDS_WHITENH UGDS_BLACKNH UGDS_API UGDS_AIANOLD UGDS_HISPOLD
        UG_NRA UG_UNKN UG_WHITENH UG_BLACKNH UG_API UG_AIANOLD UG_HISPOLD PPTUG_EF PPTUG_EF2
        NPT4_PROG COSTT4_A COSTT4_P TUITIONFEE_IN TUITIONFEE_OUT TUITIONFEE_PROG TUITFTE INEXPFTE
        AVGFACSAL PFTFAC PCTPELL LOAN_EVER PELL_EVER AGE_ENTRY AGE_ENTRY_SQ AGEGE24 FEMALE MARRIED
        DEPENDENT VETERAN FIRST_GEN FAMINC MD_FAMINC PCT_WHITE PCT_BLACK PCT_ASIAN PCT_HISPANIC
        PCT_BA PCT_GRAD_PROF PCT_BORN_US MEDIAN_HH_INC POVERTY_RATE UNEMP_RATE
    """,
    categories="""
        STABBR ACCREDAGENCY MAIN HIGHDEG CONTROL REGION LOCALE CCBASIC CCSIZSET HBCU DISTANCEONLY
    """,
    causal="""
        ACCREDAGENCY HIGHDEG CONTROL REGION LOCALE LOCALE2 CCSIZSET HBCU DISTANCEONLY POVERTY_RATE
        UNEMP_RATE
    """,
)

# The Carnegie classes out of distribution, by their code in each edition of the classification
# (Indiana University Center for Postsecondary Research, https://carnegieclassifications.acenet.edu).
# The benchmark names them as the 2010 edition does. The editions since 2015 sort associate's
# colleges anew: 9 and 14 mean other things there, and their old classes have no successor.
_SHIFTED_CARNEGIE_CLASSES = {
    18: "Master's colleges and universities, larger programs",
    22: "Baccalaureate colleges: diverse fields",
    23: "Baccalaureate/associate's colleges (since 2015: mixed)",
    24: "Special focus: theological seminaries and other faith-related institutions",
    30: "Special focus: art, music and design",
    32: "Special focus: other",
}
_ONLY_IN_2010 = {
    9: "Associate's: private not-for-profit",
    14: "Associate's: private for-profit, four-year, primarily associate's",
}
SHIFTED_CARNEGIE_CLASSES = MappingProxyType(
    {2010: _SHIFTED_CARNEGIE_CLASSES | _ONLY_IN_2010, 2018: _SHIFTED_CARNEGIE_CLASSES}
)

ASSISTMENTS = _make_task(
    environment="school_id",
    shifted=(5040, 7594, 8359, 11318, 11502, 11791, 11976, 12379, 12406, 12421),
    features="""
        Average_confidence(BORED) Average_confidence(CONCENTRATING) Average_confidence(CONFUSED)
        Average_confidence(FRUSTRATED) attempt_count hint_count school_id skill_id problem_type
        bottom_hint ms_first_response tutor_mode position type overlap_time first_action
    """,
    categories="problem_type tutor_mode type",
    causal="""
        hint_count attempt_count skill_id problem_type bottom_hint tutor_mode position type
        first_action
    """,
)

MEPS = _make_task(
    environment="INSCOV19",
    shifted=(1,),  # any private insurance; 2 is public only, 3 (uninsured) is left out
    features="""
        FCSZ1231 JOBORG31 OFREMP31 CMJHLD31 MCRPD31 MCRPB31 MCRPHO31 MCDHMO31 MCDMC31 PRVHMO31
        FSAGT31 HASFSA31 PFSAMT31 MCAID31 MCARE31 GOVTA31 GOVAAT31 GOVTB31 GOVBAT31 GOVTC31 GOVCAT31
        VAPROG31 VAPRAT31 IHS31 BSNTY31 IHSAT31 RETPLN31 SICPAY31 VACMPY31 VAPROX31 EMPST31 RNDFLG31
        MORJOB31 HRWGIM31 HRHOW31 DIFFWG31 NHRWG31 HOUR31 TEMPJB31 SSNLJB31 SELFCM31 CHOIC31
        INDCAT31 NUMEMP31 MORE31 UNION31 NWK31 STJBMM31 STJBYY31 OCCCAT31 PAYVAC31 PAYDR31 YRSINUS
        PRIDK31 PRING31 TRIAT31X MCAID31X MCARE31X MCDAT31X PUB31X PUBAT31X INS31X INSAT31X SEX
        RACEV1X RACEV2X RACEAX RACEBX RACEWX RACETHX HISPANX HISPNCAT EDUCYR HIDEG OTHLGSPK HWELLSPK
        BORNUSA WHTLGSPK TRICR31X PRIEU31 MCRPD31X TRILI31X PRIOG31 PRINEO31 PRIEUO31 PRSTX31 PRIV31
        PRIVAT31 VERFLG31 DENTIN31 DNTINS31 PMEDIN31 PMDINS31 PMEDUP31 PMEDPY31 MARRY31X FTSTU31X
        REFRL31X HRWG31X DISVW31X HELD31X OFFER31X TRIST31X TRIPR31X TRIEX31X TRICH31X VASPUN31
        VACMPM31 VASPMH31 ASMRCN31 ASPREV31 ASDALY31 ASPKFL31 ASEVFL31 ASWNFL31 IADLHP31 ADLHLP31
        AIDHLP31 WLKLIM31 LFTDIF31 STPDIF31 WLKDIF31 MILDIF31 STNDIF31 BENDIF31 RCHDIF31 FNGRDF31
        ACTLIM31 WRKLIM31 HSELIM31 SCHLIM31 VASPOU31 ASACUT31 SOCLIM31 ASTHEP31 ASSTIL31 FCRP1231
        RUSIZE31 RUCLAS31 FAMSZE31 FMRS1231 FAMS1231 REGION31 RESP31 PROXY31 BEGRFM31 BEGRFY31
        ENDRFM31 ENDRFY31 INSCOP31 INSC1231 ELGRND31 PSTATS31 SPOUID31 SPOUIN31 ACTDTY31 RTHLTH31
        MNHLTH31 CHBRON31 ASATAK31 COGLIM31 UNABLE31 VAPRHT31 VAWAIT31 VALOCT31 VANTWK31 VANEED31
        VAOUT31 VAPAST31 VACOMP31 VAMREC31 VAGTRC31 VACARC31 VAPROB31 VAREP31 VACARE31 VAPCPR31
        VAPROV31 VAPCOT31 VAPCCO31 VAPCRC31 VAPCSN31 VAPCRF31 VAPCSO31 VAPCOU31 VAPCUN31 VASPCL31
        VAPACT31 VACTDY31 VARECM31 VAMOBL31 VACOPD31 VADERM31 VAGERD31 VAHRLS31 VABACK31 VAJTPN31
        VARTHR31 VAGOUT31 VANECK31 VAFIBR31 VATMD31 VACOST31 VAPTSD31 VABIPL31 VADEPR31 VAMOOD31
        VAPROS31 VARHAB31 VAMNHC31 VAGCNS31 VARXMD31 VACRGV31 VALCOH31 REFPRS31 MOPID31X DAPID31X
        INSCOV19 AGE31X
    """,
    numbers="REFPRS31 MOPID31X DAPID31X INSCOV19 AGE31X",
    causal="""
        SEX WHTLGSPK BORNUSA HWELLSPK OTHLGSPK HIDEG EDUCYR YRSINUS HISPNCAT RACETHX RACEWX RACEBX
        RACEAX RACEV2X RACEV1X HISPANX SICPAY31 PAYDR31 REGION31 AGE31X
    """,
)

# Visits to offices, outpatient departments and emergency rooms, hospital nights, home care days.
MEPS_UTILISATION = _names("OBTOTV19 OPTOTV19 ERTOT19 IPNGTD19 HHTOTD19")

# Causal here: the risk factors that precede the disease (Wilson et al. 1998, Circulation 97:1837,
# https://doi.org/10.1161/01.CIR.97.18.1837); the other features are symptoms and findings.
HEART_DISEASE = _make_task(
    environment="hospital",
    features="age sex cp trestbps chol fbs restecg thalach exang oldpeak slope ca thal hospital",
    categories="cp restecg slope thal hospital",
    causal="age sex trestbps chol fbs",
)
HEART_DISEASE_HOSPITALS = _names("cleveland hungarian switzerland va")

# Protein -> its parents in the consensus network of Sachs et al. (2005), Science 308:523,
# https://doi.org/10.1126/science.1105809, in the names of the data file.
SACHS_PARENTS = MappingProxyType(
    {
        "Raf": _names("PKA PKC"),
        "Mek": _names("Raf PKA PKC"),
        "PLCg": _names("PIP3"),
        "PIP2": _names("PLCg PIP3"),
        "PIP3": (),
        "Erk": _names("Mek PKA"),
        "Akt": _names("PIP3 Erk PKA"),
        "PKA": _names("PKC"),
        "PKC": _names("PLCg PIP2"),
        "p38": _names("PKA PKC"),
        "JNK": _names("PKA PKC"),
    }
)

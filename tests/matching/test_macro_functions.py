from __future__ import annotations

import htcondor2
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from matching.descriptions.macro_functions import SEED, UNKNOWN
from matching.descriptions.macros import (
    Budget,
    Flattener,
    MacroError,
    Scopes,
    merged,
    names_in,
    parse_template,
    text_of,
)

_VALUES = {
    "x": "7",
    "y": "$(x)",
    "z": "$(x) * 2",
    "s": '"quoted str"',
    "f": "/a/b/c.tar.gz",
    "g": '"/a b/c d.txt"',
    "list": "p, q ,r",
    "n": "1",
    "e": "",
}


def expand(text: str, **values: str) -> str:
    return Scopes({**_VALUES, SEED: "1/A", "process": "0", **values}).expand(parse_template(text))


def of_htcondor(text: str, **values: str) -> str:
    lines = [f"{name} = {value}" for name, value in (_VALUES | values).items()]
    submit = htcondor2.Submit("\n".join(["executable = a", *lines, f"result = {text}", "queue\n"]))
    try:
        return str(submit.expand("result"))
    except KeyError:
        # So the library tells an empty value.
        return ""


@pytest.mark.parametrize(
    ("text", "expanded"),
    [
        ("$INT(x) $INT(y) $INT(z) $INT(3+4) $INT(3.7) $INT(true)", "7 7 14 7 3 1"),
        ("$INT(z,%05d)|$INT(x,a%db)", "00014|a7b"),
        ("$INT(x,%-5d)|$INT(x, %+d)|$INT(x,%#x)|$INT(x,%lld)", "7    | +7|0x7|7"),
        ("$REAL(x) $REAL(x,%g) $REAL(z,%e) $REAL(1/3.0)", "7 7.0 1.400000e+01 0.3333333333333333"),
        ("$STRING(s)|$STRING(s,%12s)|$STRING(none there)", "quoted str|  quoted str|none there"),
        ("$EVAL(z) $STRING(z) $EVAL(1/2.0)", "14 7 * 2 5.000000000000000E-01"),
        ("$EVAL(1/0) $EVAL(foo) $EVAL(s)", "error undefined quoted str"),
        ("$EVAL({1,2})|$EVAL(e)|", "{ 1,2 }||"),
        ("$CHOICE(n,a, b ,c) $CHOICE(n,list) $CHOICE(1+1,a,b,c) $CHOICE(n,a,,c)", "b q c "),
        ("$SUBSTR(f,3) $SUBSTR(f,1,3) $SUBSTR(f,-6,3)", "b/c.tar.gz a/b tar"),
        ("$SUBSTR(f,1,-3)", "a/b/c.tar"),
        ("$SUBSTR(none,3)|$SUBSTR(f,100)|$SUBSTR(f,-100,3)", "||/a/"),
        ("$BASENAME(f) $DIRNAME(f) $BASENAME(/q/w.e)", "c.tar.gz /a/b/ w.e"),
        ("$F(g) $Fq(g) $Fqa(g)", "/a b/c d.txt \"/a b/c d.txt\" '/a b/c d.txt'"),
        ("$Fnq(g) $Fpq(g)", '"c d" "/a b/"'),
        ("$Fn(f) $Fx(f) $Fnx(f) $Fd(f) $Fdd(f) $Fdb(f) $Fxb(f)", "c.tar .gz c.tar.gz b/ a/b/ b gz"),
        ("$int(x) $FOO(x) $$INT(x) $INT(x", "$int(x) $FOO(x) $$INT(x) $INT(x"),
        ("a$INT(x)b$(nope:$Fn(f))$INT(n)", "a7bc.tar1"),
        ("$RANDOM_INTEGER(5,7,3) $RANDOM_INTEGER( -3 , -3 ) $RANDOM_CHOICE(a b)", "5 -3 a b"),
    ],
)  # fmt: skip
def test_functions_give_what_those_of_htcondor_give(text: str, expanded: str) -> None:
    assert of_htcondor(text) == expanded

    assert expand(text) == expanded


def test_arguments_may_have_macros_functions_and_parentheses() -> None:
    # HTCondor takes the first closing parenthesis for the end and leaves a garbled text.
    calls = "$INT($(x),%03d) $INT((3+4)*2) $Fn($(f)) $CHOICE($(n),$(list))"
    assert expand(calls) == "007 14 c.tar q"
    assert expand('$INT($SUBSTR(x,0,1)) $EVAL(strcat("a","$(x)")) $($STRING(n)x:d)') == "7 a7 d"
    assert expand("$Fn($Fp(f)d.e) $INT($INT(x)+1)") == "d 8"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("$INT(nothing)", "$INT(nothing): not a number: nothing"),
        ("$INT(e)", "not a number: nothing"),
        ("$INT(1e30)", "not a number of 64 bits"),
        ('$REAL("3")', "not a number"),
        ("$INT(x,%s)", "not a format for it, which are %d"),
        ("$INT(x,%d%d)", "not a format"),
        ("$INT(x,%9999d)", "not a format"),
        ("$REAL(x,%d)", "not a format for it, which are %e"),
        ("$STRING(x,%d)", "not a format for it, which are %s"),
        ("$CHOICE(3,a,b,c)", "3 is not from 0 to 2"),
        ("$CHOICE(-1,a,b)", "-1 is not from 0 to 1"),
        ("$CHOICE(0,nolist)", "there is no such list"),
        ("$CHOICE(0)", "it has no list"),
        ("$SUBSTR(f)", "it has a name, a start"),
        ("$SUBSTR(f,q)", "not a number: q"),
        ("$EVAL(bad syntax)", "not a ClassAd expression"),
        ("$EVAL([a=1])", "its value is an ad"),
        ('$EVAL(eval("1"))', "eval cannot be used"),
        ('$EVAL(regexp("a","b"))', "take too long"),
        ("$RANDOM_CHOICE()", "its list is empty"),
        ("$RANDOM_INTEGER(2,1)", "2 is more than 1"),
        ("$RANDOM_INTEGER(x,9)", "not a whole number: x"),
        ("$RANDOM_INTEGER(1)", "it has a least number"),
        ("$RANDOM_INTEGER(1,2,0)", "its step is less than 1"),
    ],
)
def test_what_a_function_cannot_take_is_told(text: str, message: str) -> None:
    with pytest.raises(MacroError) as error:
        expand(text)

    assert message in str(error.value)


_NUMBERS = st.one_of(
    st.integers(-(2**31), 2**31 - 1), st.floats(-1e9, 1e9).map(lambda x: round(x, 6))
)
_FLAGS = st.lists(st.sampled_from("-+ 0"), max_size=2, unique=True).map("".join)
_WIDTHS = st.sampled_from(["", "1", "8", "12"])


@given(
    st.integers(-(2**31), 2**31 - 1),
    _FLAGS,
    _WIDTHS,
    st.sampled_from(["", ".0", ".5"]),
    st.sampled_from("di"),
)
def test_whole_numbers_are_written_as_htcondor_writes_them(
    number: int, flags: str, width: str, precision: str, kind: str
) -> None:
    text = f"[$INT(v)|$INT(v,%{flags}{width}{precision}{kind})]"

    assert expand(text, v=str(number)) == of_htcondor(text, v=str(number))


@given(
    st.integers(0, 2**31 - 1),
    st.sampled_from(["", "#", "0", "-"]),
    _WIDTHS,
    st.sampled_from("xXou"),
)
def test_numbers_of_other_bases_are_written_as_htcondor_writes_them(
    number: int, flags: str, width: str, kind: str
) -> None:
    text = f"[$INT(v,%{flags if kind in 'xX' else flags.strip('#')}{width}{kind})]"

    assert expand(text, v=str(number)) == of_htcondor(text, v=str(number))


@given(
    _NUMBERS, _FLAGS, _WIDTHS, st.sampled_from(["", ".0", ".3", ".9"]), st.sampled_from("eEfFgG")
)
def test_numbers_with_fractions_are_written_as_htcondor_writes_them(
    number: float, flags: str, width: str, precision: str, kind: str
) -> None:
    text = f"[$REAL(v)|$REAL(v,%{flags}{width}{precision}{kind})]"

    assert expand(text, v=repr(number)) == of_htcondor(text, v=repr(number))


_FILES = st.text(alphabet="ab./", min_size=1, max_size=12)


@given(_FILES, st.lists(st.sampled_from("fpduwnxbqa"), max_size=4).map("".join))
def test_parts_of_file_names_are_those_of_htcondor(name: str, letters: str) -> None:
    # Of more folders than there are the library's answer is what lies in its memory.
    assume(letters.count("d") <= name.count("/") + ("w" in letters))
    text = f"[$F{letters}(v)|$BASENAME(v)|$DIRNAME(v)]"
    parts = expand(text, v=name)
    # Of a part that is not there it may leave out one of the quotes.
    assume("q" not in letters or parts[1] != parts[2])
    # Nor does it tell a name of dots alone from its extension when it quotes.
    assume("q" not in letters or name.rpartition("/")[2].strip("."))

    assert parts == of_htcondor(text, v=name)


@given(st.text(alphabet="abc", max_size=6), st.integers(-8, 8), st.integers(-8, 8))
def test_parts_of_texts_are_those_of_htcondor(value: str, start: int, length: int) -> None:
    text = f"[$SUBSTR(v,{start})|$SUBSTR(v,{start},{length})]"

    assert expand(text, v=value) == of_htcondor(text, v=value)


@given(st.lists(st.sampled_from(["a", "b c", " d "]), min_size=2, max_size=5), st.data())
def test_what_is_chosen_is_what_htcondor_chooses(items: list[str], data: st.DataObject) -> None:
    index = data.draw(st.integers(0, len(items) - 1))
    text = f"[$CHOICE({index},{','.join(items)})|$CHOICE({index},v)]"

    assert expand(text, v=",".join(items)) == of_htcondor(text, v=",".join(items))


@given(st.integers(-50, 50), st.integers(0, 50), st.integers(1, 9), st.text(max_size=5))
def test_what_is_drawn_is_one_of_the_numbers_and_is_drawn_again(
    least: int, more: int, step: int, seed: str
) -> None:
    text = f"$RANDOM_INTEGER({least},{least + more},{step})"

    drawn = expand(text, **{SEED: seed})

    assert int(drawn) in range(least, least + more + 1, step)
    assert expand(text, **{SEED: seed}) == drawn


def test_every_number_is_drawn_by_some_job_and_by_about_as_many() -> None:
    drawn = [expand("$RANDOM_INTEGER(1,4)", process=str(n)) for n in range(4_000)]

    assert {number: 850 < drawn.count(number) < 1150 for number in "1234"} == dict.fromkeys(
        "1234", True
    )


def test_a_value_that_is_used_twice_is_drawn_once_and_two_calls_are_two_draws() -> None:
    flattener = Flattener({"r": "$RANDOM_INTEGER(1,1000000)", "a": "$(r) $(r)"})
    values = Scopes({SEED: "1/A", "process": "3"})

    once, again = values.expand(flattener.value("a")).split()
    other, further = values.expand(
        flattener.flatten("$RANDOM_INTEGER(1,1000000) $RANDOM_INTEGER(1,1000000)")
    ).split()

    assert once == again == values.expand(flattener.value("r"))
    assert len({once, other, further}) == 3


def test_a_draw_and_what_is_made_of_something_unknown_are_unknown() -> None:
    unknown = Scopes({SEED: UNKNOWN, "process": "0", "cluster": UNKNOWN})

    assert unknown.expand(parse_template("$RANDOM_CHOICE(a,b)")) == UNKNOWN
    assert (
        unknown.expand(parse_template("x$RANDOM_INTEGER(1,2)$INT(cluster,%05d)"))
        == f"x{UNKNOWN * 2}"
    )
    with pytest.raises(MacroError, match="more than"):
        unknown.expand(parse_template("$RANDOM_INTEGER(3,2)"))


def test_the_names_in_arguments_are_names_of_the_template() -> None:
    template = parse_template("$INT(X,%d) $Fn($(y)) $CHOICE(z,a,b) $RANDOM_CHOICE(q)")

    assert names_in(template) == {"x", "y", "z", "q", SEED, "process"}
    lowered = "$INT(x,%d) $Fn($(y)) $CHOICE(z,a,b) $RANDOM_CHOICE(q)"
    assert parse_template(text_of(template)) == parse_template(lowered)


def test_a_function_may_use_what_its_own_name_was_before() -> None:
    assert merged("/a/b.c", "x", "$Fn(x)-$(x)") == "$Fn(/a/b.c)-/a/b.c"
    assert Scopes({"x": "$INT(x,%03d)"}, {"x": "7"}).expand(parse_template("$(x)")) == "007"


def test_functions_take_more_from_the_budget_than_macros() -> None:
    text = "x" * 20

    assert Scopes({"a": text}, budget=Budget(1_000)).expand(parse_template("$(a)" * 10))
    with pytest.raises(MacroError, match="steps"):
        Scopes({"a": text}, budget=Budget(1_000)).expand(parse_template("$F(a)" * 10))

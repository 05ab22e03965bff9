"""The page in a real browser: what users see, type, point at, and reach with the keyboard."""

import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from lspe.encodings import KINDS, find_kind
from lspe.plots.examples import BICYCLOPENTYL, DECALIN
from lspe.predict import load

playwright = pytest.importorskip("playwright.sync_api")
expect = playwright.expect
pytestmark = pytest.mark.browser

IBUPROFEN = "CC(C)Cc1ccc(cc1)C(C)C(=O)O"
PAIR = f"#first={DECALIN}&second={BICYCLOPENTYL}"

Open = Callable[..., Any]


@pytest.fixture
def open_page(browser: Any, address: str) -> Iterator[Open]:
    """Opens the page in a fresh browser context; what goes wrong in it or leaves the machine is an error."""
    contexts, strays = [], []

    def opened(path: str = "/", *, base: str = address, problems: bool = False, **context: Any) -> Any:
        contexts.append(browser.new_context(base_url=base, reduced_motion="reduce", **context))
        page = contexts[-1].new_page()
        page.on("request", lambda request: request.url.startswith(base) or strays.append(request.url))
        page.on("pageerror", lambda error: strays.append(f"error: {error}"))
        if not problems:
            page.on("console", lambda message: message.type == "error" and strays.append(message.text))
        page.goto(path)
        page.locator(".panel .node, .operation").first.wait_for()
        return page

    yield opened
    for context in contexts:
        context.close()
    assert strays == []


def ask(page: Any, first: str, second: str = "") -> None:
    page.locator("#first").fill(first)
    page.locator("#second").fill(second)
    page.locator("#first").press("Enter")


def set_k(page: Any, k: int) -> None:
    page.locator("#k").evaluate(
        "(slider, k) => { slider.value = k; slider.dispatchEvent(new Event('input')); }", str(k)
    )


def colours(page: Any, panel: int = 0) -> list[str]:
    discs = page.locator(".panel").nth(panel).locator(".views").first.locator(".disc")
    return list(discs.evaluate_all("discs => discs.map(disc => disc.style.fill)"))


def names_of_atoms(page: Any) -> list[str]:
    labels = page.locator(".molecule .node").evaluate_all("nodes => nodes.map(node => node.ariaLabel)")
    return [re.search(r"\((.+?)\)", label)[1] for label in labels]


def test_a_typed_molecule_is_drawn_atom_by_atom(open_page: Open) -> None:
    page = open_page()
    ask(page, IBUPROFEN)
    expect(page.locator(".panel h2")).to_have_text(IBUPROFEN)
    expect(page.locator(".molecule .node")).to_have_count(15)
    expect(page.locator(".heatmap .row")).to_have_count(15)
    assert names_of_atoms(page) == [*"CCCCCCCCCCCCCOO"]
    expect(page.locator(".count")).to_have_text("11 distinct of 15 atoms")


def test_molecules_are_drawn_by_rdkit_with_their_stereo_and_numbered_on_demand(open_page: Open) -> None:
    page = open_page("/#first=C[C@H](N)C(=O)O")
    drawn = page.locator(".molecule .drawn")
    wedged = drawn.locator("path").count()
    assert page.locator(".molecule .node text").all_text_contents() == [""] * 6  # RDKit writes the letters
    letters, disc = drawn.locator("path.filled").last, page.locator(".molecule .node .disc").last
    apart = abs(letters.bounding_box()["x"] - disc.bounding_box()["x"])
    assert apart < 2 * disc.bounding_box()["width"]
    page.get_by_role("radio", name="Number").check()
    assert page.locator(".molecule .node text").all_text_contents() == [*"123456"]
    ask(page, "CC(N)C(=O)O")
    expect(page.locator(".panel h2")).to_have_text("CC(N)C(=O)O")
    assert drawn.locator("path").count() != wedged
    page.goto("/#first=csl-11-2")
    page.reload()
    expect(page.locator(".molecule .bond")).to_have_count(22)
    expect(drawn).to_have_count(0)


def test_a_sign_is_seen_until_there_is_something_to_see(browser: Any, address: str) -> None:
    page = browser.new_page(base_url=address)
    held: list[Any] = []
    page.route("**/api/encode", lambda route: held.append(route))
    page.goto("/")
    sign = page.get_by_role("status").filter(has_text="Loading")
    expect(sign).to_be_visible()
    page.wait_for_function("() => document.querySelector('#examples button')")
    expect(sign).to_be_visible()
    held[0].continue_()
    page.locator(".panel .node").first.wait_for()
    expect(sign).to_be_hidden()
    page.close()


def test_the_slider_colours_atoms_by_distinct_encodings(open_page: Open) -> None:
    page = open_page(f"/#first={IBUPROFEN}")
    answer = page.request.post("/api/encode", data={"graph": IBUPROFEN}).json()
    for k in (1, 2, 4, 24):
        set_k(page, k)
        kinds = answer["kinds"][k - 1]
        shown = colours(page)
        assert len(set(shown)) == len(set(kinds))
        assert len(set(zip(shown, kinds, strict=True))) == len(set(kinds))
        expect(page.locator(".count")).to_have_text(f"{len(set(kinds))} distinct of 15 atoms")
        faded = page.locator(".heatmap .row").first.locator(".cell.off")
        expect(faded).to_have_count(24 - k)
    assert "k=24" in page.url


def test_pointing_at_an_atom_lights_its_row_and_its_likes(open_page: Open) -> None:
    page = open_page(f"/#first={IBUPROFEN}")
    page.locator(".molecule .node").nth(0).hover()
    lit = page.locator(".molecule .node.same")
    expect(lit).to_have_count(2)  # the two methyl groups of the isobutyl end
    assert [int(re.search(r"atom (\d+)", one.get_attribute("aria-label"))[1]) for one in lit.all()] == [1, 3]
    expect(page.locator(".heatmap .row.same .name")).to_have_text(["C 1", "C 3"])
    expect(page.locator(".readout")).to_contain_text("Atom 1 (C), kind")
    page.locator(".heatmap .row", has_text="O 14").hover()
    expect(page.locator(".molecule .node.active")).to_have_attribute("aria-label", re.compile("^atom 14 "))
    page.locator(".panel h2").hover()
    expect(page.locator(".molecule .node.same")).to_have_count(0)


def test_everything_is_reached_by_keyboard(open_page: Open) -> None:
    page = open_page(f"/#first={IBUPROFEN}")
    page.locator("#first").focus()
    names = []
    for _ in range(40):
        page.keyboard.press("Tab")
        names.append(
            page.evaluate(
                """() => { const e = document.activeElement;
                return e.getAttribute("aria-label") || e.textContent || e.labels?.[0]?.textContent || e.id }"""
            )
        )
        if names[-1].startswith("atom 1 "):
            break
    assert "Show" in names
    assert "Caffeine" in names
    assert any("Steps of the walk" in name for name in names)
    page.keyboard.press("ArrowRight")
    expect(page.locator(".molecule .node.active")).to_have_attribute("aria-label", re.compile("^atom 2 "))
    expect(page.locator(".heatmap .row.active .name")).to_have_text("C 2")
    page.keyboard.press("End")
    expect(page.locator(".molecule .node.active")).to_have_attribute("aria-label", re.compile("^atom 15 "))
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.classList.contains('row')")
    page.keyboard.press("ArrowDown")
    expect(page.locator(".heatmap .row").nth(1)).to_be_focused()


def test_the_slider_moves_by_arrow_keys(open_page: Open) -> None:
    page = open_page(f"/#first={DECALIN}&k=5")
    slider = page.locator("#k")
    slider.press("ArrowLeft")
    expect(page.locator("#steps output")).to_have_text("4")
    expect(slider).to_have_attribute("aria-valuetext", "4: 3 distinct encodings among 10, unchanged since k = 2.")


def test_two_molecules_side_by_side_with_both_verdicts(open_page: Open) -> None:
    page = open_page()
    page.get_by_role("button", name="Decalin · bicyclopentyl").click()
    expect(page.locator(".panel")).to_have_count(2)
    expect(page.locator("#walk")).to_have_text("different from step 5 on")
    expect(page.locator("#refinement")).to_have_text("cannot tell them apart")
    expect(page.locator("#steps output")).to_have_text("5")
    assert not set(colours(page, 0)) & set(colours(page, 1))
    set_k(page, 4)
    assert sorted(colours(page, 0)) == sorted(colours(page, 1))
    page.locator(".panel").nth(0).locator(".node").nth(0).hover()
    expect(page.locator(".panel").nth(1).locator(".node.same")).to_have_count(4)  # kinds mean the same in both


def test_elements_can_be_made_to_count(open_page: Open) -> None:
    page = open_page("/#first=CCO&second=CCN")
    expect(page.locator("#summary")).to_contain_text("Neither test")
    page.get_by_role("checkbox", name="Elements count in the tests").check()
    expect(page.locator("#summary")).to_contain_text("before any step")


def test_labels_and_encoding_can_be_chosen(open_page: Open) -> None:
    page = open_page("/#first=CCO")
    page.get_by_role("radio", name="Number").check()
    assert page.locator(".molecule .node text").all_text_contents() == ["1", "2", "3"]
    page.get_by_role("radio", name="Kind").check()
    assert sorted(page.locator(".molecule .node text").all_text_contents()) == ["1", "1", "2"]
    page.get_by_role("combobox", name="Encoding").select_option("Laplacian")
    expect(page.locator(".count")).to_have_text("3 distinct of 3 atoms")
    expect(page.locator("#k-label")).to_have_text("Eigenvectors")


def test_every_kind_of_encoding_is_shown(open_page: Open) -> None:
    page = open_page(f"/#first={IBUPROFEN}")
    choice = page.get_by_role("combobox", name="Encoding")
    expect(choice.locator("option")).to_have_count(len(KINDS))
    for kind in map(find_kind, KINDS):
        choice.select_option(kind.name)
        expect(page.locator("#k-label")).to_have_text(kind.columns.capitalize())
        expect(page.locator(".heatmap .row").first.locator(".cell")).to_have_count(kind.width or 24)


def test_pairs_are_seen_from_a_chosen_atom(open_page: Open) -> None:
    page = open_page("/#first=CCCC")
    expect(page.locator("#origin")).to_be_hidden()
    page.get_by_role("combobox", name="Encoding").select_option("resistance-pairs")
    expect(page.locator(".count")).to_have_text("4 distinct of 4 atoms")  # 0, 1, 2 and 3 bonds away
    page.get_by_role("spinbutton", name="from atom").fill("2")
    page.keyboard.press("Enter")
    expect(page.locator(".count")).to_have_text("3 distinct of 4 atoms")


def test_two_graphs_are_compared_by_the_chosen_encoding(open_page: Open) -> None:
    page = open_page(f"/{PAIR}")
    expect(page.locator("#encodings")).to_contain_text("rwpe (5)")
    expect(page.locator("#encodings")).not_to_contain_text("degree")
    choice = page.get_by_role("combobox", name="Encoding")
    assert choice.locator("option:disabled").all_text_contents() == [
        find_kind(name).title for name in KINDS if find_kind(name).level == "pair" or name == "lappe"
    ]
    choice.select_option("heat")
    expect(page.locator("#steps output")).to_have_text("1")
    assert sorted(colours(page, 0)) != sorted(colours(page, 1))


def test_problems_are_said_in_words_and_go_away(open_page: Open) -> None:
    page = open_page(problems=True)
    ask(page, "C1CC(")
    alert = page.get_by_role("alert")
    expect(alert).to_contain_text("'C1CC('")
    expect(page.locator("#first")).to_have_attribute("aria-invalid", "true")
    ask(page, "CCO", "C1CC(")
    expect(page.locator("#second")).to_have_attribute("aria-invalid", "true")
    expect(page.locator("#first")).to_have_attribute("aria-invalid", "false")
    ask(page, "")
    expect(alert).to_have_text("Type a SMILES first, or choose an example.")
    ask(page, "CCO")
    expect(alert).to_be_hidden()
    expect(page.locator(".molecule .node")).to_have_count(3)


def test_markup_stays_text(open_page: Open) -> None:
    page = open_page(problems=True)
    page.evaluate("window.alert = () => { window.hit = true }")
    for text in ("<img src=x onerror=alert(1)>", "<script>alert(1)</script>", "</svg><svg onload=alert(1)>"):
        ask(page, text)
        expect(page.get_by_role("alert")).to_contain_text(text)
        page.goto(page.url.partition("#")[0] + f"#first={text}&second={text}")
        page.reload()
        expect(page.get_by_role("alert")).to_contain_text(text)
    assert page.evaluate("window.hit") is None
    assert page.locator("img[src=x], script:not([src]), main svg[onload]").count() == 0


def test_a_server_that_is_gone_is_said_in_words(open_page: Open) -> None:
    page = open_page(problems=True)
    page.route("**/api/encode", lambda route: route.abort())
    ask(page, "CCO")
    expect(page.get_by_role("alert")).to_contain_text("Is it still running in the terminal?")


def test_dark_mode_follows_the_system_and_the_button(open_page: Open) -> None:
    def brightness(page: Any) -> int:
        colour = page.evaluate("getComputedStyle(document.body).backgroundColor")
        return sum(map(int, re.findall(r"\d+", colour)[:3]))

    light, dark = open_page(color_scheme="light"), open_page(color_scheme="dark")
    assert brightness(light) > 600
    assert brightness(dark) < 120
    light.get_by_role("button", name="Dark").click()
    assert brightness(light) < 120
    light.reload()
    light.locator(".panel .node").first.wait_for()
    assert brightness(light) < 120
    expect(light.get_by_role("button", name="Dark")).to_have_attribute("aria-pressed", "true")


@pytest.mark.parametrize("path", ["/", f"/{PAIR}", "/docs"])
@pytest.mark.parametrize("width", [320, 375, 1280])
def test_nothing_sticks_out_at_any_width(open_page: Open, width: int, path: str) -> None:
    page = open_page(path, viewport={"width": width, "height": 700})
    assert page.evaluate("document.documentElement.scrollWidth") <= width


def test_the_address_brings_everything_back(open_page: Open) -> None:
    page = open_page(f"/{PAIR}&k=3")
    expect(page.locator("#steps output")).to_have_text("3")
    expect(page.locator("#second")).to_have_value(BICYCLOPENTYL)
    ask(page, "c1ccccc1")
    expect(page.locator(".molecule .node")).to_have_count(6)
    again = open_page(f"/#{page.url.partition('#')[2]}")
    expect(again.locator(".panel h2")).to_have_text("c1ccccc1")


def test_every_control_and_every_atom_has_a_name(open_page: Open) -> None:
    page = open_page(f"/{PAIR}")
    nameless = page.evaluate(
        """() => [...document.querySelectorAll("button, input, [tabindex], svg[role]")].filter(e =>
            !(e.getAttribute("aria-label") || e.textContent.trim() || e.labels?.length)).map(e => e.outerHTML)"""
    )
    assert nameless == []


def test_large_molecules_stay_usable(open_page: Open) -> None:
    page = open_page("/#first=" + "C" * 200)
    expect(page.locator(".molecule .node")).to_have_count(200)
    page.locator(".molecule .node").nth(1).focus()
    expect(page.locator(".molecule .node.same")).to_have_count(2)  # the neighbours of the two ends
    expect(page.locator(".readout")).to_contain_text("same encoding as 199")


def test_the_api_page_lists_every_operation(open_page: Open) -> None:
    page = open_page("/docs")
    paths = page.request.get("/openapi.json").json()["paths"]
    headings = page.locator(".operation h2").all_text_contents()
    for path in paths:
        assert any(heading.endswith(path) for heading in headings)
    expect(page.locator(".operation", has_text="/api/encode").locator("pre").first).to_contain_text('"graph"')


def test_a_run_predicts_and_shows_its_positions_layer_by_layer(
    open_page: Open, address_with_run: str, run_folder: Path
) -> None:
    page = open_page(f"/#first={IBUPROFEN}", base=address_with_run)
    value = float(load(run_folder).predict(IBUPROFEN)[0])
    expect(page.locator(".prediction")).to_have_text(f"logS {f'{value:.4g}'.replace('-', '−')}")
    positions = page.locator(".positions")
    expect(positions.locator(".node")).to_have_count(15, timeout=30_000)
    seen = set()
    for layer in (0, 1, 2):
        positions.get_by_role("slider", name="Layer").evaluate(
            "(slider, layer) => { slider.value = layer; slider.dispatchEvent(new Event('input')); }", str(layer)
        )
        expect(positions.locator("output")).to_have_text(str(layer))
        seen.add(tuple(positions.locator(".disc").evaluate_all("discs => discs.map(disc => disc.style.fill)")))
    assert len(seen) == 3
    positions.locator(".node").nth(4).hover()
    expect(positions.locator(".row.active .name")).to_have_text("C 5")


def test_a_run_says_why_and_shows_its_nearest_molecules(
    open_page: Open, address_with_run: str, run_folder: Path
) -> None:
    page = open_page(f"/#first={IBUPROFEN}", base=address_with_run)
    why, expected = page.locator(".why"), load(run_folder).explain(IBUPROFEN)
    expect(why.locator(".node")).to_have_count(15, timeout=30_000)
    fills = why.locator(".disc").evaluate_all("discs => discs.map(disc => disc.style.fill)")
    for fill, value in zip(fills, expected.atoms[:, 0], strict=True):
        assert fill.startswith("rgba(213, 94, 0" if value > 0 else "rgba(0, 114, 178")
    strength = [float(re.search(r"([\d.]+)\)$", fill)[1]) for fill in fills]
    assert int(np.argmax(strength)) == int(np.abs(expected.atoms[:, 0]).argmax())
    assert why.locator(".push").evaluate_all("lines => lines.every(line => line.style.stroke.startsWith('rgb'))")
    why.locator(".node").nth(13).hover()
    expect(why.locator(".readout")).to_contain_text("Atom 14 (O) adds ")
    rows = why.locator(".parts tr")
    expect(rows.first).to_contain_text("baseline")
    expect(rows.last).to_contain_text("logS")
    cards = why.locator(".near button")
    expect(cards).to_have_count(len(expected.neighbours))
    nearest = expected.neighbours[0]
    expect(cards.first).to_contain_text(f"Tanimoto {nearest.tanimoto:.2f}")
    cards.first.click()
    expect(page.locator("#first")).to_have_value(nearest.smiles)
    expect(page.locator(".panel h2")).to_have_text(nearest.smiles)


def test_a_run_leaves_graphs_that_are_no_molecules_alone(open_page: Open, address_with_run: str) -> None:
    page = open_page("/#first=csl-11-2", base=address_with_run)
    expect(page.locator(".prediction")).to_be_hidden()
    expect(page.locator(".positions")).to_have_count(0)

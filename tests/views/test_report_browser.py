"""The report in a real browser: nothing is executed or loaded, tables sort, all fits the screen."""

import os
import shutil

import numpy as np
import pytest
from pages import HOSTILE, LABELS, X, fit, named_report

from seminmf import BayesianSkellamSNMF, EuclideanSNMF, SkellamSNTF
from seminmf.report import report

BROWSERS = ("chromium", "chromium-browser", "google-chrome")
OPTIONS = (
    "--headless=new",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-dev-shm-usage",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
)
DESKTOP, PHONE = 1280, 390
TENSOR = np.random.default_rng(0).normal(size=(40, 5, 30))
# Contrast of each piece of text with what lies behind it, by WCAG's formula. Colours go through a
# canvas, because the browser writes mixed ones in notations of their own.
CONTRASTS = """
const pen = document.createElement("canvas").getContext("2d", { willReadFrequently: true });
function rgba(colour) {
  pen.clearRect(0, 0, 1, 1);
  pen.fillStyle = colour;
  pen.fillRect(0, 0, 1, 1);
  return [...pen.getImageData(0, 0, 1, 1).data];
}
function light(colour) {
  const [r, g, b] = colour.map((v) => v / 255)
    .map((v) => (v <= 0.03928 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4));
  return 0.2126 * r + 0.7152 * g + 0.0722 * b;
}
function behind(element) {
  for (let at = element; at; at = at.parentElement) {
    const colour = rgba(getComputedStyle(at).backgroundColor);
    if (colour[3] === 255) return colour;
  }
  throw new Error("no background");
}
const found = [];
for (const element of document.querySelectorAll("body *")) {
  const own = [...element.childNodes].some((n) => n.nodeType === 3 && n.textContent.trim());
  const style = getComputedStyle(element);
  if (!own || element.tagName === "SCRIPT" || element.hidden) continue;
  if (parseFloat(style.fontSize) === 0) continue;  // said by the tip
  const text = element.closest("svg") ? style.fill : style.color;
  const [a, b] = [light(rgba(text)), light(behind(element))];
  const contrast = (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
  found.push([contrast, element.tagName, element.className.toString(), element.textContent]);
}
return found.sort((a, b) => a[0] - b[0]);
"""


def fit_tensor():
    options = {"signed": "cr", "tol": 1e-2, "n_init": 1, "random_state": 0}
    return SkellamSNTF("nr,cr,tr->nct", 2, **options).fit(TENSOR)


@pytest.fixture(scope="module")
def driver(tmp_path_factory):
    """A browser without window. Where tests run for others, it must be there."""
    program = next((path for path in map(shutil.which, BROWSERS) if path), None)
    helper = shutil.which("chromedriver")
    if not (program and helper):
        message = "needs chromium and chromedriver (Debian: chromium, chromium-driver)"
        pytest.fail(message) if os.environ.get("CI") else pytest.skip(message)
    if not os.environ.get("CI"):
        pytest.importorskip("selenium")
    from selenium import webdriver
    from selenium.webdriver.chrome.service import Service

    options = webdriver.ChromeOptions()
    options.binary_location = program
    for option in OPTIONS:
        options.add_argument(option)
    options.add_argument(f"--user-data-dir={tmp_path_factory.mktemp('browser')}")
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    driver = webdriver.Chrome(options=options, service=Service(helper))
    yield driver
    driver.quit()


@pytest.fixture(scope="module")
def pages(tmp_path_factory):
    """Addresses of pages: an ordinary one, and one for each hostile name."""
    folder = tmp_path_factory.mktemp("pages")
    contents = {
        "ordinary": report(fit(BayesianSkellamSNMF), X, labels=LABELS),
        "tensor": report(fit_tensor(), TENSOR),
        "unnamed": report(fit(EuclideanSNMF, X.to_numpy()), X.to_numpy()),
        **{f"hostile{n}": named_report(name) for n, name in enumerate(HOSTILE)},
    }
    for name, html in contents.items():
        (folder / f"{name}.html").write_text(html, encoding="utf-8")
    return {name: (folder / f"{name}.html").as_uri() for name in contents}


def look(driver, address, width=DESKTOP, scheme="light"):
    """Open a page on a screen of this width."""
    driver.execute_cdp_cmd(
        "Emulation.setDeviceMetricsOverride",
        {"width": width, "height": 800, "deviceScaleFactor": 1, "mobile": width == PHONE},
    )
    wishes = {"prefers-color-scheme": scheme, "prefers-reduced-motion": "reduce"}
    features = [{"name": name, "value": value} for name, value in wishes.items()]
    driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": features})
    driver.get(address)


@pytest.mark.parametrize("name", ["ordinary", *(f"hostile{n}" for n in range(len(HOSTILE)))])
def test_nothing_is_executed_or_loaded(driver, pages, name):
    from selenium.common.exceptions import NoAlertPresentException

    look(driver, pages[name])
    with pytest.raises(NoAlertPresentException):
        _ = driver.switch_to.alert.text
    assert driver.execute_script("return window.hacked") is None
    assert driver.execute_script("return document.scripts.length") == 1
    assert driver.execute_script("return performance.getEntriesByType('resource').length") == 0
    assert driver.get_log("browser") == []


def test_the_policy_stops_what_gets_in_by_another_way(driver, pages):
    look(driver, pages["ordinary"])
    driver.execute_script(
        """
        const script = document.createElement("script");
        script.textContent = "window.hacked = 1";
        document.body.append(script);
        document.body.insertAdjacentHTML("beforeend", "<img src=x onerror='window.hacked = 1'>");
        """
    )
    assert driver.execute_script("return window.hacked") is None
    refused = [entry["message"] for entry in driver.get_log("browser")]
    assert refused
    assert all("Content Security Policy" in message for message in refused)


def keys(driver, column):
    """What the components' table is sorted by, from top to bottom."""
    script = """
        const rows = [...document.querySelector("#components table.sortable").tBodies[0].rows];
        return rows.map((row) => row.cells[arguments[0]].dataset.key);
    """
    return [float(key) for key in driver.execute_script(script, column)]


def headers(driver):
    return driver.find_elements("css selector", "#components table.sortable thead th")


def sorting(driver):
    return [header.get_attribute("aria-sort") for header in headers(driver)]


def test_tables_sort_by_click_and_by_key(driver, pages):
    from selenium.webdriver.common.keys import Keys

    look(driver, pages["ordinary"])
    assert keys(driver, 1) == sorted(keys(driver, 1), reverse=True)
    assert sorting(driver) == ["none", "descending", "none", "none", "none", "none", "none"]
    button = headers(driver)[0].find_element("tag name", "button")
    button.click()
    assert keys(driver, 0) == [2, 1, 0]
    assert sorting(driver) == ["descending", "none", "none", "none", "none", "none", "none"]
    button.send_keys(Keys.ENTER)
    assert keys(driver, 0) == [0, 1, 2]
    assert sorting(driver)[0] == "ascending"


def test_text_sorts_as_people_do(driver, pages):
    look(driver, pages["ordinary"])
    script = """
        const table = document.querySelector("#residuals table.sortable");
        table.querySelector("button").click();
        return [...table.tBodies[0].rows].map((row) => row.cells[0].textContent);
    """
    names = driver.execute_script(script)
    assert names == [f"column {i}" for i in range(X.shape[1])]


def test_what_is_no_number_is_last_in_any_order(driver, pages):
    look(driver, pages["ordinary"])
    script = """
        const table = document.querySelector("#residuals table.sortable");
        delete table.tBodies[0].rows[0].cells[1].dataset.key;
        table.tBodies[0].rows[0].id = "odd";
        return [0, 1].map(() => {
            table.querySelectorAll("button")[1].click();
            return [...table.tBodies[0].rows].at(-1).id;
        });
    """
    assert driver.execute_script(script) == ["odd", "odd"]


def tip(driver):
    found = driver.find_element("id", "tip")
    return found.text if found.is_displayed() else None


def test_values_under_the_pointer(driver, pages):
    from selenium.webdriver import ActionChains

    look(driver, pages["ordinary"])
    assert tip(driver) is None
    cell = driver.find_elements("css selector", "#components table.heat tbody td")[1]
    row = cell.find_element("xpath", "..").find_element("tag name", "th").text
    driver.execute_script("arguments[0].scrollIntoView({block: 'center'})", cell)
    ActionChains(driver).move_to_element(cell).perform()
    assert tip(driver) == f"component {row}, column 1: {cell.text}"
    ActionChains(driver).move_to_element(driver.find_element("tag name", "h2")).perform()
    assert tip(driver) is None


def test_values_by_arrow_keys(driver, pages):
    from selenium.webdriver.common.keys import Keys

    look(driver, pages["ordinary"])
    box = driver.find_element("css selector", "#components .scroll.tips")
    rows = [row.text for row in box.find_elements("css selector", "tbody th")]
    said = []
    for key in (Keys.ARROW_RIGHT, Keys.ARROW_RIGHT, Keys.ARROW_DOWN, Keys.ARROW_LEFT):
        box.send_keys(key)
        said.append(tip(driver).split(":")[0])
    assert said == [
        f"component {rows[0]}, column 0",
        f"component {rows[0]}, column 1",
        f"component {rows[1]}, column 1",
        f"component {rows[1]}, column 0",
    ]
    box.send_keys(Keys.ESCAPE)
    assert tip(driver) is None
    look(driver, pages["unnamed"])
    chart = driver.find_element("css selector", "#convergence .chart")
    chart.send_keys(Keys.ARROW_RIGHT)
    assert tip(driver).startswith("iteration 0: ")


@pytest.mark.parametrize("width", [DESKTOP, PHONE])
def test_the_page_never_scrolls_sideways(driver, pages, width):
    for address in pages.values():
        look(driver, address, width)
        inner, page = driver.execute_script(
            "return [innerWidth, document.documentElement.scrollWidth]"
        )
        assert inner == width
        assert page <= width


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("name", ["ordinary", "unnamed", "tensor"])
def test_all_text_can_be_read(driver, pages, name, scheme):
    look(driver, pages[name], scheme=scheme)
    background = driver.execute_script("return getComputedStyle(document.body).backgroundColor")
    dark = sum(map(int, background.strip("rgb()").split(","))) < 3 * 128
    assert dark == (scheme == "dark")
    contrasts = driver.execute_script(CONTRASTS)
    assert len(contrasts) > 100
    assert contrasts[0][0] >= 4.5, contrasts[0]

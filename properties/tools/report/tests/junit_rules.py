# SPDX-License-Identifier: Apache-2.0
"""What readers of JUnit XML (Jenkins, GitLab, GitHub actions) take: elements, attributes, order, and sums that agree."""
import collections
import re
import xml.etree.ElementTree as xml

# The attributes that each element may have (* : must), and its children in their order.
COUNTS = "tests failures errors disabled time name"
ELEMENTS = {
    "testsuites": (COUNTS, ["testsuite"]),
    "testsuite": ("*name *tests failures errors skipped disabled time timestamp hostname id package file",
                  ["properties", "testcase", "system-out", "system-err"]),
    "properties": ("", ["property"]),
    "property": ("*name value", []),
    "testcase": ("*name *classname time status assertions file line",
                 ["properties", "skipped", "error", "failure", "system-out", "system-err"]),
    "skipped": ("message type", []),
    "error": ("message *type", []),
    "failure": ("message *type", []),
    "system-out": ("", []),
    "system-err": ("", []),
}
NUMBER = re.compile(r"[0-9]+$")
SECONDS = re.compile(r"[0-9]+(\.[0-9]{1,3})?$")


def shape(element, parent=None):
    """Names, attributes and order below `element`."""
    if element.tag not in ELEMENTS:
        yield f"<{element.tag}> is no element of JUnit"
        return
    words, children = ELEMENTS[element.tag]
    allowed = [word.lstrip("*") for word in words.split()]
    yield from (f"<{element.tag} {name}=>: unknown" for name in element.attrib if name not in allowed)
    yield from (f"<{element.tag}> without {word[1:]}" for word in words.split()
                if word.startswith("*") and word[1:] not in element.attrib)
    for name, value in element.attrib.items():
        if name in ("tests", "failures", "errors", "skipped", "disabled") and not NUMBER.match(value):
            yield f"<{element.tag} {name}={value!r}>: no number"
        if name == "time" and not SECONDS.match(value):
            yield f"<{element.tag} time={value!r}>: no seconds"
    places = [children.index(child.tag) if child.tag in children else -1 for child in element]
    if -1 in places or places != sorted(places):
        yield f"<{element.tag}> holds {[child.tag for child in element]}, expected {children} in this order"
    for child in element:
        yield from shape(child)


def sums(suite):
    """A suite says how many of its tests ended in which way; a test ends in one way and has a name of its own."""
    cases = suite.findall("testcase")
    ends = collections.Counter()
    for case in cases:
        ways = [child.tag for child in case if child.tag in ("skipped", "error", "failure")]
        if len(ways) > 1:
            yield f"test {case.get('name')!r} ends in {len(ways)} ways"
        ends.update(ways)
    for name, count in (("tests", len(cases)), ("failures", ends["failure"]), ("errors", ends["error"]),
                        ("skipped", ends["skipped"])):
        if int(suite.get(name, 0)) != count:
            yield f"suite {suite.get('name')!r} says {name}={suite.get(name)}, holds {count}"
    names = collections.Counter((case.get("classname"), case.get("name")) for case in cases)
    yield from (f"{count} tests are named {name}" for name, count in names.items() if count > 1)


def violations(text):
    try:
        root = xml.fromstring(text)
    except xml.ParseError as error:
        return [f"no XML: {error}"]
    if root.tag != "testsuites":
        return [f"the root is <{root.tag}>"]
    found = list(shape(root))
    for suite in root:
        found += [] if found else sums(suite)
    for name in ("tests", "failures", "errors"):
        total = sum(int(suite.get(name, 0)) for suite in root)
        if not found and name in root.attrib and int(root.get(name)) != total:
            found.append(f"<testsuites {name}={root.get(name)}>, its suites have {total}")
    if len({suite.get("name") for suite in root}) < len(root):
        found.append("two suites of one name")
    return found

# SPDX-License-Identifier: Apache-2.0
"""What SARIF 2.1.0 (OASIS) asks of a log, as far as assay writes one: every property an object may have, its type,
which must be there, and what the text of the standard asks beyond its schema. Then what code scanning asks on top.

A type is: str, int, bool, uri, any, a set of words, the name of an object, [type] for an array, {type} as ("map", type).
'*' before a name: it must be there. '?' behind it: assay writes none, so its inside is not looked at."""
import re

URI = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*:)?([A-Za-z0-9._~!$&'()*+,;=:@/?#-]|%[0-9A-Fa-f]{2})*$")
TEXT = "multiformatMessageString"
OBJECTS = {
    "sarifLog": {"$schema": "uri", "*version": {"2.1.0"}, "*runs": ["run"], "inlineExternalProperties?": "any"},
    "run": {"*tool": "tool", "invocations": ["invocation"], "results": ["result"], "columnKind": {"utf16CodeUnits", "unicodeCodePoints"},
            "defaultEncoding": "str", "language": "str", **dict.fromkeys(
                "conversion? versionControlProvenance? originalUriBaseIds? artifacts? logicalLocations? graphs? automationDetails? "
                "runAggregates? baselineGuid? redactionTokens? defaultSourceLanguage? newlineSequences? externalPropertyFileReferences? "
                "threadFlowLocations? taxonomies? addresses? translations? policies? webRequests? webResponses? specialLocations?".split(), "any")},
    "tool": {"*driver": "toolComponent", "extensions?": "any"},
    "toolComponent": {"*name": "str", "version": "str", "semanticVersion": "str", "fullName": "str", "organization": "str",
                      "product": "str", "informationUri": "uri", "downloadUri": "uri", "shortDescription": TEXT,
                      "fullDescription": TEXT, "rules": ["reportingDescriptor"], "notifications": ["reportingDescriptor"],
                      "isComprehensive": "bool", "guid?": "any", "taxa?": "any", "contents?": "any", "language": "str"},
    "reportingDescriptor": {"*id": "str", "name": "str", "shortDescription": TEXT, "fullDescription": TEXT, "help": TEXT,
                            "helpUri": "uri", "messageStrings?": "any", "defaultConfiguration?": "any", "relationships?": "any",
                            "guid?": "any", "deprecatedIds": ["str"]},
    TEXT: {"*text": "str", "markdown": "str"},
    "message": {"text": "str", "markdown": "str", "id": "str", "arguments": ["str"]},
    "invocation": {"*executionSuccessful": "bool", "exitCode": "int", "exitCodeDescription": "str", "commandLine": "str",
                   "arguments": ["str"], "startTimeUtc": "str", "endTimeUtc": "str", "workingDirectory": "artifactLocation",
                   "toolExecutionNotifications": ["notification"], "toolConfigurationNotifications": ["notification"]},
    "notification": {"*message": "message", "level": {"none", "note", "warning", "error"}, "locations": ["location"],
                     "descriptor?": "any", "associatedRule?": "any", "timeUtc": "str", "exception?": "any"},
    "result": {"*message": "message", "ruleId": "str", "ruleIndex": "int", "level": {"none", "note", "warning", "error"},
               "kind": {"notApplicable", "pass", "fail", "review", "open", "informational"}, "locations": ["location"],
               "baselineState": {"new", "unchanged", "updated", "absent"}, "partialFingerprints": ("map", "str"),
               "fingerprints": ("map", "str"), "relatedLocations": ["location"], "occurrenceCount": "int", "rank?": "any",
               "guid?": "any", "suppressions?": "any", "codeFlows?": "any", "fixes?": "any", "stacks?": "any", "hostedViewerUri": "uri"},
    "location": {"id": "int", "physicalLocation": "physicalLocation", "logicalLocations": ["logicalLocation"], "message": "message"},
    "physicalLocation": {"artifactLocation": "artifactLocation", "region": "region", "contextRegion": "region", "address?": "any"},
    "artifactLocation": {"uri": "uri", "uriBaseId": "str", "index": "int", "description": "message"},
    "region": {"startLine": "int", "startColumn": "int", "endLine": "int", "endColumn": "int", "charOffset": "int",
               "charLength": "int", "byteOffset": "int", "byteLength": "int", "snippet?": "any", "message": "message"},
    "logicalLocation": {"name": "str", "fullyQualifiedName": "str", "decoratedName": "str", "kind": "str", "index": "int"},
}
PLAIN = {"str": str, "int": int, "bool": bool, "any": object, "uri": str}


def typed(value, wanted, path):
    if isinstance(wanted, set):
        return [] if isinstance(value, str) and value in wanted else [f"{path}: {value!r} is none of {sorted(wanted)}"]
    if isinstance(wanted, list):
        if not isinstance(value, list):
            return [f"{path}: no array"]
        return [line for i, item in enumerate(value) for line in typed(item, wanted[0], f"{path}[{i}]")]
    if isinstance(wanted, tuple):
        if not isinstance(value, dict):
            return [f"{path}: no object"]
        return [line for key, item in value.items() for line in typed(item, wanted[1], f"{path}.{key}")]
    if wanted in OBJECTS:
        return objects(value, wanted, path)
    if not isinstance(value, PLAIN[wanted]) or (wanted == "int" and isinstance(value, bool)):
        return [f"{path}: {value!r} is no {wanted}"]
    return [f"{path}: {value!r} is no URI reference"] if wanted == "uri" and not URI.match(value) else []


def objects(value, name, path):
    if not isinstance(value, dict):
        return [f"{path}: no object"]
    known = {key.strip("*?"): wanted for key, wanted in OBJECTS[name].items()}
    known["properties"] = "any"
    found = [f"{path}: no {key[1:]}" for key in OBJECTS[name] if key.startswith("*") and key[1:] not in value]
    for key, item in value.items():
        found += typed(item, known[key], f"{path}.{key}") if key in known else [f"{path}.{key}: {name} has no such property"]
    return found + [f"{path}: {line}" for line in meaning(value, name)]


def meaning(value, name):
    """What types do not say."""
    if name == "message" and "text" not in value and "id" not in value:
        yield "a message without text or id"
    if name in ("message", TEXT) and value.get("text") == "":
        yield "an empty message"
    if name == "physicalLocation" and "artifactLocation" not in value and "address" not in value:
        yield "a place without artifactLocation or address"
    if name == "artifactLocation" and "uri" not in value and "index" not in value:
        yield "an artifact without uri or index"
    if name == "region" and not {"startLine", "charOffset", "byteOffset"} & set(value):
        yield "a region that begins nowhere"
    if name == "region" and any(value.get(key, 1) < 1 for key in ("startLine", "startColumn", "endLine", "endColumn")):
        yield "lines and columns count from 1"
    if name == "result" and "ruleId" not in value and "rule" not in value:
        yield "a result without a rule"
    if name == "result" and value.get("kind", "fail") != "fail" and value.get("level", "none") != "none":
        yield "a level of what is no failure"
    if name == "run":
        yield from of_run(value)


def of_run(run):
    results = run.get("results", [])
    states = sum("baselineState" in result for result in results)
    if states not in (0, len(results)):
        yield f"{states} of {len(results)} results have a baselineState; all or none must"
    ids = [rule.get("id") for rule in run.get("tool", {}).get("driver", {}).get("rules", [])]
    if len(set(ids)) < len(ids):
        yield "two rules of one id"
    for i, result in enumerate(results):
        if result.get("ruleId") not in ids:
            yield f"results[{i}]: {result.get('ruleId')!r} is no rule of the tool"
        # GitHub refuses a log whole for one result without a file.
        places = [place.get("physicalLocation", {}).get("artifactLocation", {}).get("uri") for place in result.get("locations", [])]
        if not places or not all(places):
            yield f"results[{i}]: no file"


def violations(log):
    return objects(log, "sarifLog", "log")

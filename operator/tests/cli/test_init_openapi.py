"""A scenario that is made from an OpenAPI document holds on a server of that API."""

from __future__ import annotations

import contextlib
import copy
import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import jsonschema
import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from laptime.catalog import Scenario, scenario_of
from laptime.catalog.problems import scenario_problems
from laptime.cli.init.openapi import translated
from laptime.cli.init.openapi.node import root_of
from laptime.cli.init.openapi.schemas import answer_schema
from laptime.cli.init.translation import Translation
from laptime.cli.main import run_command
from laptime.cli.manifest_file import parse_any
from laptime.cli.mistakes import Mistake
from laptime.cli.own_schemas import violations
from laptime.cli.validate_command import misfits_of
from laptime.verification.verdict import Verdict
from laptime.verification.verify import Task, verify
from tests.cli.api_servers import SHOP_KEY, Answer, Asked, Orders, PetShop, catalogue, serving

HERE = Path(__file__).parent / "openapi"
Document = dict[str, Any]


def printed(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[str, Document, Document]:
    assert run_command(["init", *arguments]) == 0
    text = capsys.readouterr().out
    scenario, run = yaml.safe_load_all(text)
    return text, scenario, run


def checked(scenario: Document) -> Scenario:
    """Return a scenario that the API server and the operator would take."""
    found = scenario_of(scenario)
    assert scenario_problems(found) == []
    return found


def verdict_on(server: Callable[[Asked], Answer], scenario: Document) -> Verdict:
    found = checked(scenario)
    with serving(server) as address:
        checks, values = found.counting_checks, found.check_values
        return verify(Task(target=address, checks=checks, values=values))


def comments(text: str, title: str) -> list[str]:
    lines = text.splitlines()
    start = lines.index(f"# {title}")
    found: list[str] = []
    for line in lines[start + 1 :]:
        if not line.startswith("# - "):
            return found
        found.append(line.removeprefix("# - "))
    return found


def test_orders_with_a_login_hold_without_an_edit(capsys: pytest.CaptureFixture[str]) -> None:
    text, scenario, run = printed(capsys, "--from", str(HERE / "orders.yaml"))
    verdict = verdict_on(Orders(), scenario)
    assert (verdict.message, verdict.ok) == ("10 checks passed", True)
    assert misfits_of(run["spec"], {"orders": checked(scenario)}) == ([], None)
    sessions = {one["name"]: one["steps"] for one in scenario["spec"]["sessions"]}
    assert sessions["orders"] == [
        *("register-auth-register-post", "login-auth-token-post", "list-products-products-get"),
        *("create-order", "list-orders", "read-order", "update-order", "delete-order"),
    ]
    assert comments(text, "Left out:") == [
        "DELETE /products/{product_id}: it would delete rows that no request makes again: write a "
        "request that makes one and captures product_id, or ids with use: once"
    ]


def test_a_catalogue_holds_without_an_edit(capsys: pytest.CaptureFixture[str]) -> None:
    text, scenario, _ = printed(capsys, "--from", str(HERE / "catalogue.json"))
    verdict = verdict_on(catalogue, scenario)
    assert (verdict.message, verdict.ok) == ("6 checks passed", True)
    assert "/api/v2/health" not in {one["path"] for one in scenario["spec"]["requests"]}
    assert comments(text, "Left out:") == [
        "GET /api/v2/legacy: it is deprecated; write it by hand if it is meant",
        "GET /api/v2/broken: the reference #/components/schemas/Nobody leads nowhere",
        "GET /api/v2/health: it says whether the server is ready (healthPath), and is no work",
    ]
    assert "get-products: category: its other examples are not used: games; without sort: no " in (
        text
    )


def test_pets_say_that_a_key_is_needed(capsys: pytest.CaptureFixture[str]) -> None:
    text, scenario, _ = printed(capsys, "--from", str(HERE / "pets.yaml"))
    (needed, _) = comments(text, "Write before it is run:")
    assert needed.startswith(
        "spec.feeders shopKey: what the server takes, instead of write-it-here"
    )
    verdict = verdict_on(PetShop(), scenario)
    assert "GET /v1/store/inventory: expected status 200, got 401" in verdict.message
    (feeder,) = [one for one in scenario["spec"]["feeders"] if one["name"] == "shopKey"]
    feeder["values"] = [SHOP_KEY]
    verdict = verdict_on(PetShop(), scenario)
    assert (verdict.message, verdict.ok) == ("8 checks passed", True)


def test_what_pets_cannot_be_asked_for_is_said(capsys: pytest.CaptureFixture[str]) -> None:
    text, scenario, _ = printed(capsys, "--from", str(HERE / "pets.yaml"))
    assert comments(text, "Left out:") == [
        "POST /v1/pets/{petId}/photo: its body is multipart/form-data, which only a script can "
        "make: write one (docs/own-script.md), or a body as text",
        "HEAD /v1/owners/{ownerId}: a scenario has GET, POST, PUT, PATCH and DELETE",
        "GET /v1/owners/{ownerId}: nobody answers with ownerId, and it has no example: write one "
        "into the document, or the request by hand",
    ]
    document = yaml.safe_load((HERE / "pets.yaml").read_text())
    operations = {
        f"{method.upper()} /v1{path}"
        for path, item in document["paths"].items()
        for method in item
        if method != "parameters"
    }
    made = len(scenario["spec"]["requests"])
    assert len(operations) == made + len(comments(text, "Left out:"))


def test_a_server_that_breaks_the_document_does_not_pass(
    capsys: pytest.CaptureFixture[str],
) -> None:
    _, scenario, _ = printed(capsys, "--from", str(HERE / "orders.yaml"))

    class Careless(Orders):
        def __call__(self, asked: Asked) -> Answer:
            said = super().__call__(asked)
            if asked.matches("POST", "/orders"):
                return Answer(said.status, {**said.json, "lines": None}, said.headers)
            return said

    verdict = verdict_on(Careless(), scenario)
    assert verdict.reason == "WrongAnswer"
    assert "POST /orders" in verdict.message


def test_the_servers_are_those_of_the_options(capsys: pytest.CaptureFixture[str]) -> None:
    source = str(HERE / "catalogue.json")
    _, _, run = printed(capsys, "--from", source, "--service", "shop:8080")
    service = {"name": "shop", "port": 8080, "healthPath": "/api/v2/health"}
    assert run["spec"]["servers"] == [{"name": "mine", "service": service}]
    assert violations(run) == ([], True)
    _, _, run = printed(capsys, "--from", source, "--image", "registry.example/shop:2")
    image = {"name": "mine", "image": "registry.example/shop:2", "port": 8080}
    assert run["spec"]["servers"] == [{**image, "healthPath": "/api/v2/health"}]
    assert violations(run) == ([], True)
    for wrong in (["--service", "shop"], ["--service", "a:1", "--image", "b"], ["--host", "x"]):
        assert run_command(["init", "--from", source, *wrong]) == 1


def test_what_an_image_must_do_to_get_ready_is_said(capsys: pytest.CaptureFixture[str]) -> None:
    source, title = str(HERE / "catalogue.json"), "Write before it is run:"
    text, _, _ = printed(capsys, "--from", source, "--image", "registry.example/shop:2")
    (said,) = (one for one in comments(text, title) if one.startswith("spec.servers"))
    assert said == (
        "spec.servers: the port of the image, which must answer GET /api/v2/health there with 200 "
        "as soon as it serves, or what healthPath says instead (docs/servers.md)"
    )
    text, _, _ = printed(capsys, "--from", source, "--service", "shop:8080")
    assert "spec.servers" not in text


def test_of_an_image_it_is_said_what_takes_back_the_rows_that_requests_make(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    source, title = str(HERE / "orders.yaml"), "Write before it is run:"
    text, _, _ = printed(capsys, "--from", source, "--image", "registry.example/shop:2")
    (said,) = (one for one in comments(text, title) if one.startswith("spec.data.postgres"))
    assert "in reset what takes back before each trial and each check" in said
    text, _, _ = printed(capsys, "--from", source, "--service", "shop:8080")
    assert "spec.data.postgres" not in text
    # What only reads leaves nothing.
    paths = {"/a": {"get": {"responses": {"200": {"description": ""}}}}}
    reading = {"openapi": "3.0.0", "info": {"title": "a", "version": "1"}, "paths": paths}
    file = tmp_path / "api.json"
    file.write_text(json.dumps(reading))
    text, _, _ = printed(capsys, "--from", str(file), "--image", "registry.example/shop:2")
    assert "spec.data.postgres" not in text


def test_editors_are_told_the_schemas(capsys: pytest.CaptureFixture[str]) -> None:
    text, _, _ = printed(capsys, "--from", str(HERE / "catalogue.json"))
    first, second = text.split("\n---\n")
    line = "# yaml-language-server: $schema="
    assert first.startswith(f"{line}benchmarkscenario.schema.json\n")
    assert second.startswith(f"{line}benchmarkrun.schema.json\n")


def test_what_is_made_meets_the_schemas_that_editors_are_given(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    _, *made = printed(capsys, "--from", str(HERE / "orders.yaml"))
    assert run_command(["schema", str(tmp_path)]) == 0
    for document in made:
        file = tmp_path / f"{document['kind'].lower()}.schema.json"
        validator = jsonschema.Draft202012Validator(json.loads(file.read_text()))
        assert list(validator.iter_errors(document)) == []
        assert list(validator.iter_errors({**document, "spec": {"novelty": 1}})) != []
    assert run_command(["schema", str(tmp_path / "nowhere")]) == 1


# Documents of a few lines -----------------------------------------------------------------


def api(paths: Document, **more: Any) -> Document:
    return {"openapi": "3.1.0", "info": {"title": "It", "version": "1"}, "paths": paths, **more}


def answers(schema: Any = None, status: str = "200") -> Document:
    content = {} if schema is None else {"content": {"application/json": {"schema": schema}}}
    return {"responses": {status: {"description": "", **content}}}


def requests_of(document: Document) -> dict[str, Document]:
    made = translated(document)
    assert made.scenario is not None
    checked(made.scenario)
    return {one["name"]: one for one in made.scenario["spec"]["requests"]}


def one_request(operation: Document, path: str = "/a", method: str = "get") -> Document:
    (found,) = requests_of(api({path: {method: {**answers(), **operation}}})).values()
    return found


def query(**parameter: Any) -> str:
    asked = {"name": "q", "in": "query", "required": True, **parameter}
    return str(one_request({"parameters": [asked]})["path"]).removeprefix("/a?")


@pytest.mark.parametrize(
    ("parameter", "written"),
    [
        ({"schema": {"type": "integer", "minimum": 5}}, "q=5"),
        ({"schema": {"type": "integer", "exclusiveMinimum": 5, "multipleOf": 4}}, "q=8"),
        ({"schema": {"type": "number", "maximum": -2, "exclusiveMaximum": True}}, "q=-3"),
        ({"schema": {"type": "number", "minimum": 0.25, "maximum": 0.75}}, "q=0.5"),
        ({"schema": {"type": "string", "format": "date"}}, "q=2024-01-31"),
        ({"schema": {"type": "string", "enum": ["a b", "c"]}}, "q=a%20b"),
        ({"schema": {"type": "string", "pattern": "^[0-9]{5}$"}}, "q=12345"),
        ({"schema": {"type": ["null", "boolean"]}}, "q=true"),
        ({"schema": {"const": "{{n}}"}}, "q=%7B%7Bn%7D%7D"),
        ({"schema": {"type": "array", "items": {"type": "integer"}}, "example": [1, 2]}, "q=1&q=2"),
        ({"explode": False, "style": "pipeDelimited", "schema": {"example": [1, 2]}}, "q=1%7C2"),
        ({"schema": {"type": "object", "example": {"a": 1, "b": "x y"}}}, "a=1&b=x%20y"),
        ({"explode": False, "schema": {"example": {"a": 1}}}, "q=a,1"),
        ({"content": {"application/json": {"example": {"a": 1}}}}, "q=%7B%22a%22%3A%201%7D"),
    ],
)
def test_how_parameters_are_written(parameter: Document, written: str) -> None:
    assert query(**parameter) == written


def body(schema: Document, **more: Any) -> str:
    content = {"content": {"application/json": {"schema": schema, **more}}}
    return str(one_request({"requestBody": content}, method="post")["body"])


RECURSIVE = {"type": "object", "required": ["next"], "properties": {"next": {"$ref": "#/x"}}}


@pytest.mark.parametrize(
    ("schema", "written"),
    [
        (
            {
                "type": "object",
                "required": ["a", "r"],
                "properties": {
                    "a": {"type": "string", "maxLength": 2},
                    "r": {"type": "string", "readOnly": True},
                    "left": {"type": "string"},
                    "shown": {"type": "string", "examples": ["x"]},
                },
            },
            '{"a": "te", "shown": "x"}',
        ),
        ({"oneOf": [{"type": "null"}, {"type": "array", "items": {"type": "boolean"}}]}, "[true]"),
        (
            {
                "allOf": [
                    {"type": "object", "properties": {"a": {"type": "integer"}}},
                    {"required": ["a"]},
                ]
            },
            '{"a": 1}',
        ),
        ({"type": "object", "example": {"a": "{{b}} {id}"}}, "{\"a\": \"{{'{{'}}b}} {{'{'}}id}\"}"),
    ],
)
def test_bodies_are_made_from_schemas(schema: Document, written: str) -> None:
    assert body(schema) == written


PATTERN = {"type": "string", "pattern": "^~~$"}


def sending(schema: Document) -> Document:
    return {"requestBody": {"content": {"application/json": {"schema": schema}}}}


def asking(**parameter: Any) -> Document:
    return {"parameters": [{"name": "x", "in": "query", "required": True, **parameter}]}


@pytest.mark.parametrize(
    ("operation", "said"),
    [
        (sending(RECURSIVE), "contains itself"),
        (
            sending({"type": "object", "required": ["a"], "properties": {"a": PATTERN}}),
            "a must match ^~~$: write an example that does",
        ),
        (
            {"requestBody": {"required": True, "content": {"image/png": {}}}},
            "its body is image/png",
        ),
        ({"responses": {"404": {"description": ""}}}, "it has no answer with a status 2xx"),
        ({"security": [{"mutual": []}]}, "it needs mutual (not described)"),
        (asking(schema={}), "x has no type"),
        (asking(schema={"type": "string", "minLength": 10**12}), "x has 1e+12 letters or more"),
        (
            sending({"type": "array", "minItems": 10**9, "items": {"type": "integer"}}),
            "the body has 1e+09 items or more: write an example",
        ),
        (
            sending(
                {
                    "type": "array",
                    "minItems": 300,
                    "items": {"type": "array", "minItems": 300, "items": {"type": "integer"}},
                }
            ),
            "the body has 300 items or more",
        ),
        ({"parameters": [{"$ref": "https://elsewhere.example/x"}]}, "leads to another machine"),
        ({"parameters": [{"$ref": "#/components/parameters/None"}]}, "leads nowhere"),
        (answers({"properties": {"a": {"$ref": "#/nothing"}}}), "leads nowhere"),
        (
            sending({"type": "object", "example": {"f": [float("nan")]}}),
            "NaN is no value of JSON: write another example",
        ),
    ],
)
def test_what_cannot_be_made_is_named(operation: Document, said: str) -> None:
    good = {"get": answers()}
    document = api({"/a": {"post": {**answers(), **operation}}, "/b": good}, x=RECURSIVE)
    made = translated(document)
    (left_out,) = made.left_out
    assert left_out.startswith("POST /a: ")
    assert said in left_out
    assert made.scenario is not None
    assert [one["path"] for one in made.scenario["spec"]["requests"]] == ["/b"]


def test_a_value_that_contains_itself_by_an_alias_is_named() -> None:
    tree: Document = {"type": "object", "required": ["a"], "properties": {}}
    tree["properties"]["a"] = tree
    made = translated(api({"/a": {"post": sending(tree) | answers()}, "/b": {"get": answers()}}))
    (left_out,) = made.left_out
    assert left_out.startswith("POST /a: a value contains itself by an alias of YAML")


def test_a_reference_to_what_it_stands_in_is_no_alias() -> None:
    way = "#/paths/~1a/get/responses/200/content/application~1json/schema"
    tree = {"type": "object", "properties": {"parts": {"properties": {"a": {"$ref": way}}}}}
    assert translated(api({"/a": {"get": answers(tree)}})).left_out == []


def test_a_part_that_requires_what_it_is_itself() -> None:
    part = {"allOf": [{"$ref": "#/part"}], "example": {"a": 1}, "required": ["a"]}
    document = api({"/a": {"post": sending({"allOf": [{"$ref": "#/part"}]}) | answers()}})
    (request,) = requests_of({**document, "part": part}).values()
    assert request["body"] == '{"a": 1}'


@pytest.mark.parametrize("text", ['{"a":' * 2000 + "1" + "}" * 2000, "[" * 2000, "&a [*a]"])
@pytest.mark.parametrize("form", ['{"openapi": "3.1.0", "servers": [%s], "paths": {}}', "- %s"])
def test_a_document_that_is_nested_too_deeply_is_a_mistake(
    text: str, form: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "api.yaml"
    file.write_text(form % text)
    assert run_command(["init", "--from", str(file)]) == 1
    assert capsys.readouterr().err.startswith("Error: ")


@pytest.mark.parametrize("name", ["pets.yaml", "orders.yaml", "catalogue.json"])
@given(data=st.data())
@settings(max_examples=15)
def test_a_document_that_is_wrong_somewhere_is_read_as_far_as_it_is_right(
    name: str, data: st.DataObject
) -> None:
    (document,) = parse_any((HERE / name).read_text(), name)
    wrong = st.sampled_from([None, [], {}, "x", 1, True, {"$ref": "#/nope"}, [None], {"a": None}])
    *way, last = data.draw(st.sampled_from([place for place in places(document) if place]))
    node = document
    for key in way:
        node = node[key]
    node[last] = data.draw(wrong)
    with contextlib.suppress(Mistake):
        translated(document)


def test_a_list_of_values_that_is_none_is_left_out() -> None:
    (document,) = parse_any((HERE / "pets.yaml").read_text(), "pets.yaml")
    document["components"]["schemas"]["Pet"]["properties"]["status"]["enum"] = None
    assert "enum: null" not in str(translated(document))


def places(node: Any, way: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Yield the way to each part of a document."""
    yield way
    children = node.items() if isinstance(node, dict) else []
    for key, child in [*children, *(enumerate(node) if isinstance(node, list) else [])]:
        yield from places(child, (*way, key))


def test_a_document_of_which_nothing_can_be_made() -> None:
    with pytest.raises(Mistake, match="no operation of the document can be made"):
        translated(api({"/a/{b}": {"get": answers()}}))
    with pytest.raises(Mistake, match="convert it to OpenAPI 3 first"):
        translated({"swagger": "2.0", "paths": {}})
    with pytest.raises(Mistake, match="has no paths"):
        translated({"openapi": "3.0.0", "paths": []})


def test_a_health_that_another_request_needs_is_a_request_too() -> None:
    row = {"type": "object", "required": ["id"], "properties": {"id": {"type": "integer"}}}
    number = {"name": "id", "in": "path", "required": True, "schema": {"type": "integer"}}
    one = {"parameters": [number], **answers(row)}
    paths = {
        "/health": {"get": answers({"type": "array", "items": row})},
        "/health/{id}": {"get": one},
    }
    made = translated(api(paths))
    assert made.scenario is not None
    checked(made.scenario)
    first, second = made.scenario["spec"]["requests"]
    assert (first["path"], made.health_path) == ("/health", "/health")
    assert second["path"].startswith("/health/{{")


def test_a_link_of_the_document_says_where_an_id_is() -> None:
    made = answers({"type": "object", "properties": {"ref": {"type": "string"}}}, "201")
    link = {"operationId": "read", "parameters": {"key": "$response.body#/ref"}}
    made["responses"]["201"]["links"] = {"read": link}
    read = {"operationId": "read", "parameters": [{"name": "key", "in": "path", "required": True}]}
    found = requests_of(
        api({"/made": {"post": made}, "/other/{key}": {"get": {**answers(), **read}}})
    )
    assert found["post-made"]["captures"] == [{"name": "otherKey", "json": "/ref"}]
    assert found["read"]["path"] == "/other/{{otherKey}}"


def test_an_id_in_the_header_location() -> None:
    made = answers(status="201")
    made["responses"]["201"]["headers"] = {"Location": {}}
    key = {"parameters": [{"name": "id", "in": "path", "required": True}]}
    found = requests_of(
        api({"/things": {"post": made}, "/things/{id}": {**key, "delete": answers(status="204")}})
    )
    (capture,) = found["post-things"]["captures"]
    assert capture == {"name": "thingId", "header": "location", "regex": "([^/?#]+)/?$"}
    assert found["delete-things-id"]["path"] == "/things/{{thingId}}"


@pytest.mark.parametrize(
    ("scheme", "sent"),
    [
        ({"type": "http", "scheme": "basic"}, {"headers": {"authorization": "Basic {{basic}}"}}),
        ({"type": "http", "scheme": "bearer"}, {"headers": {"authorization": "Bearer {{token}}"}}),
        ({"type": "apiKey", "in": "query", "name": "k y"}, {"path": "/a?k%20y={{mine}}"}),
        ({"type": "apiKey", "in": "cookie", "name": "sid"}, {"cookies": {"sid": "{{mine}}"}}),
    ],
)
def test_what_nobody_answers_with_is_a_feeder_to_fill(scheme: Document, sent: Document) -> None:
    document = api(
        {"/a": {"get": {**answers(), "security": [{"mine": []}]}}},
        components={"securitySchemes": {"mine": scheme}},
    )
    (request,) = requests_of(document).values()
    assert request.items() >= sent.items()
    (said, *_) = translated(document).to_write
    assert said.startswith("spec.feeders ")
    assert "get-a needs it" in said


def test_a_cookie_that_a_login_sets() -> None:
    fields = {"user": {"type": "string", "example": "ada"}, "password": {"type": "string"}}
    login = {
        **answers(status="204"),
        "security": [],
        "requestBody": {"content": {"application/json": {"schema": {"properties": fields}}}},
    }
    document = api(
        {"/login": {"post": login}, "/a": {"get": {**answers(), "security": [{"sid": []}]}}},
        components={"securitySchemes": {"sid": {"type": "apiKey", "in": "cookie", "name": "s"}}},
    )
    found = requests_of(document)
    assert found["post-login"]["captures"] == [{"name": "token", "cookie": "s"}]
    assert found["get-a"]["cookies"] == {"s": "{{token}}"}
    assert translated(document).to_write == [
        "requests and checks, post-login: name and password of a user that the server knows; no "
        "operation registers one"
    ]


def test_security_that_may_be_left_out_is_left_out() -> None:
    document = api(
        {"/a": {"get": {**answers(), "security": [{"key": []}, {}]}}},
        components={"securitySchemes": {"key": {"type": "apiKey", "in": "header", "name": "k"}}},
    )
    (request,) = requests_of(document).values()
    assert "headers" not in request


def test_references_into_files_of_the_folder_only(tmp_path: Path) -> None:
    (tmp_path / "outside.yaml").write_text("secret: {type: integer}\n")
    folder = tmp_path / "api"
    folder.mkdir()
    (folder / "parts.yaml").write_text("Pet: {type: object, required: [id]}\n")

    def made(reference: str) -> Translation:
        document = api({"/a": {"get": answers({"$ref": reference})}, "/b": {"get": answers()}})
        return translated(document, folder / "api.yaml")

    inside = made("parts.yaml#/Pet")
    assert inside.scenario is not None
    schema = inside.scenario["spec"]["checks"][0]["jsonSchema"]
    assert schema == {"type": "object", "required": ["id"]}
    (folder / ".kube").mkdir()
    for name in (".env.yaml", ".kube/config.yaml", "notes.txt", "key"):
        (folder / name).write_text("Pet: {type: object, required: [id]}\n")
    for reference in (
        *("../outside.yaml#/secret", "nothing.yaml#/Pet", "file:///etc/hostname"),
        *(".env.yaml#/Pet", ".kube/config.yaml#/Pet", "notes.txt#/Pet", "key#/Pet"),
    ):
        assert made(reference).left_out == [f"GET /a: the reference {reference} leads nowhere"]


@pytest.mark.parametrize(
    ("schema", "made"),
    [
        ({"type": "string", "nullable": True}, {"type": ["string", "null"]}),
        ({"type": "string", "nullable": True, "enum": ["a"]},
         {"type": ["string", "null"], "enum": ["a", None]}),
        ({"minimum": 1, "exclusiveMinimum": True}, {"exclusiveMinimum": 1}),
        ({"maximum": 1, "exclusiveMaximum": False}, {"maximum": 1}),
        ({"oneOf": [{"type": "string"}]}, {"anyOf": [{"type": "string"}]}),
        ({"required": ["a", "b"], "properties": {"b": {"writeOnly": True}}}, {"required": ["a"]}),
        ({"pattern": r"\p{L}"}, {}),
        ({"xml": {}, "example": 1, "description": "x"}, {}),
        (True, {}),
        (False, {"not": {}}),
    ],
)  # fmt: skip
def test_schemas_become_json_schema(schema: Any, made: Document) -> None:
    assert answer_schema(root_of({"x": schema})["x"]) == made


def test_a_schema_that_contains_itself() -> None:
    tree = {"type": "object", "properties": {"child": {"$ref": "#/T"}}}
    made = answer_schema(root_of({"T": tree, "a": {"$ref": "#/T"}})["a"])
    child = {"type": "object", "properties": {"child": {"$ref": "#/$defs/T"}}}
    assert made == {"$ref": "#/$defs/T", "$defs": {"T": child}}


def test_more_operations_than_a_scenario_has() -> None:
    made = translated(api({f"/p{number}": {"get": answers()} for number in range(40)}))
    assert made.scenario is not None
    assert len(made.scenario["spec"]["requests"]) == 32
    assert len(made.left_out) == 8
    assert made.left_out[0].startswith("GET /p32: a scenario has at most 32 requests")
    checked(made.scenario)


def test_schemas_that_are_too_large_are_left_out_and_named() -> None:
    large = {"type": "object", "properties": {f"field-{n}": {"type": "string"} for n in range(900)}}
    made = translated(api({f"/p{n}": {"get": answers(large)} for n in range(4)}))
    assert made.scenario is not None
    checked(made.scenario)
    assert len([one for one in made.scenario["spec"]["checks"] if "jsonSchema" in one]) == 2
    assert [one.partition(":")[0] for one in made.left_out] == [
        "checks.get-p0.jsonSchema",
        "checks.get-p1.jsonSchema",
    ]


def test_a_comment_cannot_be_left(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    operation = {**copy.deepcopy(answers()), "deprecated": True}
    document = api({"/a\nkind: Secret\n": {"get": operation}, "/b": {"get": answers()}})
    file = tmp_path / "api.yaml"
    file.write_text(yaml.safe_dump(document))
    _, scenario, run = printed(capsys, "--from", str(file))
    assert [scenario["kind"], run["kind"]] == ["BenchmarkScenario", "BenchmarkRun"]

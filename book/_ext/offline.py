"""Keep the built pages from naming outside addresses that nothing here uses."""


def setup(app):
    app.connect("html-page-context", _without_thebe, priority=900)
    return {"parallel_read_safe": True, "parallel_write_safe": True}


def _without_thebe(app, pagename, templatename, context, doctree):
    """jupyter-book always adds thebe's loader, which points at a content network."""
    context["script_files"] = [
        script
        for script in context.get("script_files", [])
        if "thebe" not in str(getattr(script, "filename", script)).lower()
        and "THEBE_JS_URL" not in (getattr(script, "attributes", {}) or {}).get("body", "")
    ]

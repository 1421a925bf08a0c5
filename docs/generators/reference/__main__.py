"""Write the generated pages of docs/reference: ``make docs``."""

from docs.generators.reference import (
    columns_page,
    dashboard_data_page,
    errors_page,
    http_page,
    metrics_page,
    results_data_page,
    settings_page,
    toml_page,
)

PAGES = (
    columns_page,
    dashboard_data_page,
    errors_page,
    http_page,
    metrics_page,
    results_data_page,
    settings_page,
    toml_page,
)

if __name__ == "__main__":
    for module in PAGES:
        module.PAGE.write_text(module.page(), encoding="utf-8")

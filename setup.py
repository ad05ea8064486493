"""The package; `pyproject.toml` holds the settings of the tools."""

from pathlib import Path

from setuptools import find_namespace_packages, setup

HERE = Path(__file__).parent
README = HERE / 'README.md'


def read_version() -> str:
    """Read the version without importing the package."""
    scope = {}
    exec((HERE / 'mmgradguard' / 'version.py').read_text(encoding='utf-8'), scope)
    return scope['__version__']


setup(
    name='mmgradguard',
    version=read_version(),
    description='Find, survive and explain exploding gradients in detector training',
    long_description=README.read_text(encoding='utf-8') if README.exists() else '',
    long_description_content_type='text/markdown',
    license='Apache-2.0',
    python_requires='>=3.8',
    # Namespace packages, because `mmgradguard/configs` (a link to `configs`) and the
    # folders in it are no Python packages, and still belong in the wheel.
    packages=find_namespace_packages(
        include=['mmgradguard', 'mmgradguard.*'], exclude=['*.__pycache__']
    ),
    package_data={'': ['*.j2', '*.html', '*.css', '*.js', '*.json', 'py.typed']},
    # torch and mmengine are never here: pip must not replace the build a user has,
    # and mmengine and its fork own the same folder.
    install_requires=[
        'rich>=12.0',  # tables and colours in the terminal
        'Jinja2>=3.0',  # the page report.html
        'plotly>=5.0',  # the charts in it
    ],
    extras_require={
        'mmengine': [
            'torch>=1.13',  # everything that reads a gradient
            'mmengine>=0.10',  # the hooks and the optimizer wrappers
        ]
    },
    entry_points={'console_scripts': ['mmgradguard = mmgradguard.cli.main:main']},
    classifiers=[
        'Intended Audience :: Science/Research',
        'Operating System :: OS Independent',
        'Programming Language :: Python :: 3',
        'Topic :: Scientific/Engineering :: Artificial Intelligence',
    ],
)
